import type { Command } from "commander";
import { parseExactly } from "../../../event/exact-json.ts";
import { DELIVERY_METHODS } from "../../../event/methods.ts";
import { parseErrorResponse } from "../../client/api.ts";
import { apiOptions, type Client, createAction, examples } from "../../client/command.ts";
import { readData } from "../../client/delivery.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, type ExitCode, usageError } from "../../exit.ts";
import { escapeLines } from "../../output/escape.ts";

interface ApiOptions {
  readonly data?: string;
}

export function define(command: Command, context: CommandContext): void {
  apiOptions(command)
    .argument("<method>", "HTTP method")
    .argument("<path>", "path below /v1, with its query, such as '/apps?limit=10'")
    .option("-d, --data <json>", "JSON body: text, @file, or @- for standard input")
    .action(createAction<[string, string], ApiOptions>(context, callApi));
  examples(command, [
    ["inlet api GET /apps", "any operation of the API, with the stored address and key"],
    ["inlet api PUT /apps/app_1/channels/hooks -d @channel.json", "with a body from a file"],
    ["inlet api GET '/apps/app_1/events?limit=1' --json", "on one line, for a program"],
  ]).addHelpText(
    "after",
    "\nPrints the body of the response. Exits with 1 if the gateway rejects the request.",
  );
}

async function callApi(
  { api, io, output }: Client,
  [method, path]: readonly [string, string],
  { data }: ApiOptions,
): Promise<ExitCode> {
  const verb = method.toUpperCase();
  if (!DELIVERY_METHODS.some((known) => known === verb))
    throw usageError(`${method} is not a method of the API. Use one of ${DELIVERY_METHODS.join(", ")}.`);
  if (data !== undefined && verb === "GET")
    throw usageError("A GET has no body. Leave out --data, or choose POST, PUT or DELETE.");
  const response = await api.open(`/${path.replace(/^\/?(?:v1(?=\/))?\/?/, "")}`, {
    method: verb,
    ...(data === undefined ? {} : { body: parseBody(String(await readData(io, data))) }),
  });
  if (!response.ok) throw await parseErrorResponse(response, api.baseUrl);
  const text = await response.text();
  if (!/\bjson\b/.test(response.headers.get("content-type") ?? "")) io.stdout.write(escapeLines(text));
  else if (output.isJson) output.json(text);
  else output.say(escapeLines(JSON.stringify(parseExactly(text), null, 2)));
  return EXIT.done;
}

/** Checks that a text is JSON, but sends the text, so that numbers keep their exact form. @throws CommandError */
function parseBody(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch (error) {
    throw usageError(`--data is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}
