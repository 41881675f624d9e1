"""The list of commands that pass in semi-auto: allowed flags, whole lines, nothing unknown (APR-01)."""

from pathlib import Path

import pytest
from opendev.core.approval import ApprovalLevel
from opendev.policy.rules import judge_command

ROOTS = (Path("/work/proj"),)

READS = [
    *("ls", "ls -la", "ls *.py", "cat a b", "git status", "git status -sb", "git diff HEAD~2 -- src/a.py", "git log -p", "git show HEAD"),
    *("git log --oneline -n 5", "git branch -a", "git stash list", "git worktree list", "git rev-parse HEAD", "git --no-pager log"),
    *("pwd", "cd src && ls", "wc -l *.py | sort -n", "head -20 a", "grep -rn 'x' src | head", "rg foo -g '*.py'", "find . -name '*.py'"),
    *("sed -n 1,5p f", "sed -n '1,5p;7p' f", "sed 's/a/b/g' f", "awk '{print $1}' f", "echo $HOME $(pwd)", "echo '$(rm x)'"),
    *("cat <<'EOF'\n$(rm x)\nEOF", "ls 2>/dev/null", "ls >/dev/null 2>&1", "test -f x && echo y", "[ -d src ] || echo no", "python3 --version"),
    *("true", "diff -u a b", "sort f | uniq -c", "date +%s", "LC_ALL=C ls", "x=1", "( ls; pwd )"),
]  # fmt: skip

ASKS = [
    # chaining, redirects, substitution
    *("ls && rm x", "ls; curl http://x.test", "ls | sh", "ls\nrm x", "ls & rm x", "echo x > f", "cat f >> g", "echo x >| f"),
    *("echo $(rm x)", "echo `rm x`", 'echo "$(rm x)"', "cat <(rm x)", "echo a > >(sh)", "ls ${X:-$(rm x)}", "cat <<EOF\n$(rm x)\nEOF"),
    *("echo $((a[$(rm x)]))", "if true; then rm x; fi", "cd $X", "cat $X", "git log $X", "cd /tmp/p && python3 script.py"),
    # names
    *("lsof -i", "./sed -n 1p f", "bin/grep x f", "python3 x.py", "make", "git difftool -y", "gitk", "env ls", "xargs cat", "time ls"),
    # git
    *("git -c core.pager='touch m' -p log", "git -p status", "git --paginate show HEAD", "git --config-env=core.pager=X log"),
    *("git diff --output=x", "git log --outp=x", "git diff --ext-diff", "git diff --", "git diff --no-index -- a b", "git grep -O x"),
    *("git commit -m x", "git branch new", "git tag v1", "git remote add x y", "git fetch", "git config user.name x", "git log *"),
    # flags that write or run
    *("find . -delete", "find . -execdir sh -c id \\;", "find . -fprint out", "find . -fls out", "sed -n '1e id' f", "sed 's/a/b/e' f"),
    *("sed 's/a/b/w out' f", "sed -n 'w out' f", "sed -i s/a/b/ f", "sed -f x.sed f", "sed --in-place s/a/b/ f"),
    *("awk 'BEGIN{system(\"id\")}'", "awk '{print > \"out\"}' f", "awk '{print | \"sh\"}' f", "awk 'BEGIN{\"id\"|getline}'", "awk -f x.awk f"),
    *("rg --pre ./x.sh foo", "rg --pre=./x.sh foo", "rg --hostname-bin ./x.sh foo", "sort -o out f", "sort --compress-program=./x.sh f"),
    *("sort --output=out f", "sort --outp=out f", "man -P 'sh -c id' ls", "date --set=x", "date 0101", "file -m magic -C", "less +'!id' f"),
    *("history -w out", "uniq in out", "xxd -r in out", "nl f > out", "tail -f log", "tree -o out", "hostname evil", "printf -v x y"),
    # array indexes are evaluated, functions and aliases stand in for commands
    *("FOO[$(touch m)]=1", "FOO[$(touch m)]=1; ls", "test -v 'a[$(touch m)]'", "[[ 0 -eq 'a[$(touch m)]' ]]", "x='a[$(touch m)]'; (( x ))"),
    *("read 'a[$(touch m)]' <<< 1", "a=(1); unset 'a[$(touch m)]'", "let 'a[$(touch m)]=1'", "declare -i z='a[$(touch m)]'", "X[`touch m`]=1"),
    *("ls(){ touch m; }; ls", "function ls { touch m; }; ls", "hash -p /usr/bin/touch ls; ls m", "coproc touch m", "alias ls=rm", "exec ls"),
    *("mapfile -C 'touch m #' -c 1 a < f", "trap 'touch m' EXIT", "enable -f x y", "{touch,m}", "PATH=. ls", "PATH=.; ls", "IFS=x", "."),
    *("cat .git/../../x", "cat ../x", "cat /etc/passwd", "cat ~/.ssh/id_rsa", "-", "", "$(", "'unterminated", "if then"),
]  # fmt: skip


@pytest.mark.req("APR-01")
@pytest.mark.parametrize("command", READS)
def test_reading_passes(command: str) -> None:
    verdict = judge_command(command, ApprovalLevel.SEMI_AUTO, ROOTS)
    assert verdict.decision == "allow", verdict


@pytest.mark.req("APR-01")
@pytest.mark.parametrize("command", ASKS)
def test_anything_else_asks(command: str) -> None:
    assert judge_command(command, ApprovalLevel.SEMI_AUTO, ROOTS).decision != "allow"


@pytest.mark.parametrize("command", ["ls", "git status", "echo x"])
def test_manual_asks_for_reading_too(command: str) -> None:
    assert judge_command(command, ApprovalLevel.MANUAL, ROOTS).decision == "ask"
