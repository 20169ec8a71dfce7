import { Argument, type Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;

/**
 * Fixes three faults of the generated bash script: it requires the package bash-completion, fails when sourced twice, and cannot
 * complete file names.
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

/** Prints a completion script for a shell. That script calls `inlet complete` whenever the user presses Tab. */
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
    ["source <(inlet completion bash)", "in ~/.bashrc; for zsh in ~/.zshrc"],
    ["inlet completion fish > ~/.config/fish/completions/inlet.fish", "run once"],
  ]).addHelpText(
    "after",
    "\nCompletes `inlet`, which must be on the PATH. /docs/command-line shows how to create a launcher.",
  );
}
