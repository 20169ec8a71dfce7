import { Argument, type Command } from "commander";
import { examples } from "../../client/command.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;

/** Prints a shell's script, which then calls `inlet complete` at each Tab. */
export function define(command: Command): void {
  command
    .addArgument(new Argument("<shell>").choices(SHELLS))
    .action(async (shell: (typeof SHELLS)[number]) => {
      const { script } = await import("@bomb.sh/tab");
      script(shell, "inlet", "inlet");
    });
  examples(command, [
    ["source <(inlet completion bash)", "in ~/.bashrc; zsh in ~/.zshrc likewise"],
    ["inlet completion fish > ~/.config/fish/completions/inlet.fish", "once"],
  ]).addHelpText(
    "after",
    "\nIt completes `inlet`, which has to be on the PATH, such as by a link to src/main.ts.",
  );
}
