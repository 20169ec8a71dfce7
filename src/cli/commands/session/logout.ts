import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import { removeCredentials } from "../../client/credentials.ts";
import type { CommandContext } from "../../command-context.ts";
import { createOutput } from "../../output/output.ts";

/** Forgets what `login` has kept. */
export function define(command: Command, { io }: CommandContext): void {
  command.description("Forget the address and the API key that `inlet login` has kept.").action(async () => {
    const removed = await removeCredentials(io.env);
    createOutput(io).note(removed ? "Forgotten. The key itself is still valid." : "Nothing was kept.");
  });
  examples(command, [
    ["inlet logout", "the key stays valid"],
    ["inlet keys revoke key_1 && inlet logout", "so that it is valid no more"],
  ]);
}
