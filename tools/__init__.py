"""Floor 2: what an agent can do. One tool a file, each a value ``TOOL``; ``catalog`` is the one list of them.

Rooms: catalog, registry, schema, dispatch, permit, outcomes, hooks, hook_process, hook_trust, hooked, summarise, offload, failing_part (the way of a call); read_file, write_file, edit_file, list_files, search,
run_command, list_processes, get_process_output, kill_process, ask_user, batch_tool, find_symbol, find_referencing_symbols,
rename_symbol, replace_symbol_body, insert_before_symbol, insert_after_symbol, write_todos, update_todo, complete_todo, list_todos, spawn_subagent,
get_subagent_output, task_complete, fetch_url, web_search, capture_web_screenshot, open_browser, capture_screenshot, analyze_image, read_pdf,
notebook_edit (Catalogue T); replace_text, rewrite_code, delete_file, move_file (recipe steps);
files, held, walk, mass_edit, blocking, child, started, search_worker, todo_list, subagent_result, promotion, questions, installs, web_install, pages, outside, pdf_worker,
symbol_edit, symbol_insert, diagnostics (shared by them); web/ (engines, guard, crawl); edit/ (the nine passes),
shell/ (processes), lsp/ (language servers); search_tools, invoke_skill, skills (what is found when needed), mcp/ (external servers).
"""
