"""The six stages of an iteration, one file each (LOOP-02): precheck, thinking, critique, action, execution, post."""
