import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import { removeCredentials } from "../../client/credentials.ts";
import type { CommandContext } from "../../command-context.ts";
import { createOutput } from "../../output/output.ts";

export function define(command: Command, { io }: CommandContext): void {
  command.description("Remove the address and the API key stored by `inlet login`.").action(async () => {
    const removed = await removeCredentials(io.env);
    createOutput(io).note(
      removed ? "Credentials removed. The API key itself is still valid." : "No credentials were stored.",
    );
  });
  examples(command, [
    ["inlet logout", "the key stays valid"],
    ["inlet keys revoke key_1 && inlet logout", "revoke the key first"],
  ]);
}
