import { Argument, type Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;

/**
 * The script calls a function of the package bash-completion, which is not everywhere; it cannot be read twice, as a shell does that
 * reads its settings anew; and it says when names of files are not wanted, but not that they are.
 */
const BEFORE_BASH = `if ! declare -F __inlet_complete >/dev/null; then
type _get_comp_words_by_ref >/dev/null 2>&1 || _get_comp_words_by_ref() {
    cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} cword=$COMP_CWORD
    words=("\${COMP_WORDS[@]}")
}
`;
const AFTER_BASH = `fi
complete -o default -F __inlet_complete inlet
`;

/** Prints a shell's script, which then calls `inlet complete` at each Tab. */
export function define(command: Command, { io }: CommandContext): void {
  command
    .addArgument(new Argument("<shell>").choices(SHELLS))
    .action(async (shell: (typeof SHELLS)[number]) => {
      const { script } = await import("@bomb.sh/tab");
      if (shell === "bash") io.stdout.write(BEFORE_BASH);
      script(shell, "inlet", "inlet");
      if (shell === "bash") io.stdout.write(AFTER_BASH);
    });
  examples(command, [
    ["source <(inlet completion bash)", "in ~/.bashrc; zsh in ~/.zshrc likewise"],
    ["inlet completion fish > ~/.config/fish/completions/inlet.fish", "once"],
  ]).addHelpText(
    "after",
    "\nIt completes `inlet`, which has to be on the PATH: /docs/command-line has a launcher for that.",
  );
}
