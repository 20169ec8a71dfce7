import type { Command } from "commander";
import { createApi } from "../../client/api.ts";
import { apiOptions, type ClientOptions, examples } from "../../client/command.ts";
import { formatLocalUrl, parseUrl, writeCredentials } from "../../client/credentials.ts";
import type { CommandContext } from "../../command-context.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { createOutput } from "../../output/output.ts";
import { readSecret } from "../../output/prompt.ts";

/** Stores an address and API key, but only after the gateway has accepted the key. */
export function define(command: Command, context: CommandContext): void {
  const { io } = context;
  apiOptions(command)
    .description(
      "Store a gateway's address and an API key. The key is read from standard input; a terminal prompts for it.",
    )
    .action(async (options: Pick<ClientOptions, "url" | "output" | "field">) => {
      const output = createOutput(io, options.output, options.field);
      const baseUrl = parseUrl(options.url ?? (io.env.INLET_URL || formatLocalUrl(io.env)));
      const apiKey = (await readSecret(io, `API key for ${baseUrl}: `)).trim();
      if (apiKey === "") throw new CommandError("No API key was entered.", { exitCode: EXIT.wrongSettings });
      const who = await createApi({ baseUrl, apiKey }, io.signal).get<object>("/auth/whoami");
      const file = await writeCredentials(io.env, { baseUrl, apiKey });
      output.say(`The gateway accepted the key. It is stored in ${file}.`);
      if (output.isJson) output.one({ baseUrl, file, ...who });
    });
  examples(command, [
    ["inlet login --url https://inlet.example.com", "prompts for the key"],
    ["echo $KEY | inlet login", "for the gateway on this machine, at INLET_PORT or port 8080"],
  ]).addHelpText(
    "after",
    "\nOnly you can read the file (mode 0600). It is in $XDG_CONFIG_HOME/inlet or ~/.config/inlet. INLET_URL and INLET_API_KEY take precedence.",
  );
}
