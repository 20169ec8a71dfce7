import type { Command } from "commander";
import { formatCount } from "../../../lib/quantities.ts";
import type { Explanation } from "../../../resources/apps/explain.ts";
import type { IntakeExplanation } from "../../../resources/apps/intakes/explain.ts";
import type { ExplainedItemEntity } from "../../../resources/events/explained-item.ts";
import { formatPath } from "../../client/api.ts";
import { findBlueprint } from "../../client/blueprint.ts";
import { appOptions, type Client, createAction, examples, readEntity } from "../../client/command.ts";
import { type DeliveryOptions, deliveryOptions, readDelivery } from "../../client/delivery.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, type ExitCode, usageError } from "../../exit.ts";
import type { Output } from "../../output/output.ts";
import type { Column } from "../../output/table.ts";

interface ExplainOptions extends DeliveryOptions {
  readonly verify?: boolean;
  readonly intake?: boolean;
  readonly routeBy?: readonly string[];
  readonly file?: string;
}

export function define(command: Command, context: CommandContext): void {
  const target = "uid or id of the channel, or of the blueprint with --intake";
  deliveryOptions(appOptions(command).argument("<channel>", target))
    .option("--verify", "verify the delivery too; by default, verification is skipped")
    .option(
      "-f, --file <file>",
      "JSON file with `events` to try instead of the channel's own; - is standard input",
    )
    .option("--intake", "explain how the intake of a blueprint would route the items")
    .option("--route-by <path...>", "with --intake: paths to try instead of the intake's own")
    .action(
      createAction<[string], ExplainOptions>(context, async (client, [named], options) => {
        const { api, output, appPath, io } = client;
        if (options.routeBy && !options.intake) throw usageError("--route-by requires --intake.");
        const { body, ...request } = await readDelivery(api, io, options);
        const given = {
          ...request,
          body: body.toString("base64"),
          bodyEncoding: "base64",
          verify: options.verify === true,
        };
        if (options.intake && options.file) throw usageError("--intake and --file exclude each other.");
        if (options.intake) return explainIntake(client, named, { ...given, routeBy: options.routeBy });
        const tried = options.file === undefined ? {} : await readEntity(io, options.file);
        const path = await appPath("channels", named, "explain");
        const result = await api.post<Explanation>(path, { ...given, ...tried });
        if (output.isJson) output.one(result);
        else show(result, output);
        const fails =
          result.verification.result === "refused" ||
          result.items.some(({ failures }) => failures.length > 0);
        return fails ? EXIT.failed : EXIT.done;
      }),
    );
  examples(command, [
    ['inlet explain inbox --data \'{"hello":"world"}\'', "a JSON body"],
    ["inlet explain calls --method GET --query 'status=done'", "a query instead of a body"],
    ["inlet explain hooks --preset github", "the provider's sample"],
    ["inlet explain hooks --data @push.json -H 'x-github-event: push'", "a file with headers"],
    ["inlet explain inbox --data @order.json -f events.json", "definitions that you have not saved yet"],
    ["inlet explain slack --intake --preset slack", "to which install the blueprint's intake would route it"],
  ]).addHelpText(
    "after",
    "\nNo events are published. Exits with 1 if the delivery would be rejected, or an item quarantined or held.",
  );
}

const ROUTE_COLUMNS: readonly Column<IntakeExplanation["items"][number]>[] = [
  { title: "item", value: ({ item }) => item ?? "" },
  { title: "outcome", value: ({ result }) => result, colors: { routed: "green", "*": "red" } },
  { title: "route key", value: ({ routeKey }) => routeKey },
  { title: "app", value: ({ appId }) => appId, isOptional: true },
  {
    title: "paths",
    wraps: true,
    value: ({ paths }) =>
      paths.map(({ path, values }) => `${path}: ${values.length === 0 ? "nothing" : values.join(", ")}`),
  },
  { title: "detail", value: ({ detail }) => detail, wraps: true },
];

async function explainIntake({ api, output }: Client, named: string, given: object): Promise<ExitCode> {
  const { id } = await findBlueprint(api, named);
  const result = await api.post<IntakeExplanation>(formatPath("blueprints", id, "intake", "explain"), given);
  const { verification, isPaused, received, items } = result;
  if (output.isJson) output.one(result);
  else {
    showVerification(verification, received, output);
    if (isPaused) output.note("The intake is paused: it buffers deliveries.");
    output.list(items, ROUTE_COLUMNS, "The delivery has no items.");
  }
  const fails = verification.result === "refused" || items.some((item) => item.result !== "routed");
  return fails ? EXIT.failed : EXIT.done;
}

function show({ verification, received, items }: Explanation, output: Output): void {
  showVerification(verification, received, output);
  showItems(items, output);
}

function showVerification(
  { result, message }: Explanation["verification"],
  received: number,
  output: Output,
): void {
  const reason = message === null ? "" : ` (${message})`;
  output.note(`verification: ${result}${reason}; ${formatCount(received, "item")}`);
}

export function showItems(items: readonly ExplainedItemEntity[], output: Output): void {
  const rows = items.flatMap(({ item, events, failures, definitions, closest }) => [
    ...events.map(({ id, type, status, data }) => ({ item, what: status, type, id, about: data })),
    ...failures.map(({ reason, path, detail }) => ({
      item,
      what: reason,
      type: closest === null ? "" : `closest: ${closest}`,
      id: path,
      about: detail,
    })),
    ...definitions.flatMap(({ type, ignored }) =>
      ignored === null ? [] : [{ item, what: "ignored", type, id: ignored.path, about: ignored.detail }],
    ),
  ]);
  output.list(
    rows,
    [
      { title: "item", value: ({ item }) => item ?? "" },
      {
        title: "outcome",
        value: ({ what }) => what,
        colors: { new: "green", duplicate: "yellow", ignored: "yellow", "*": "red" },
      },
      { title: "type", value: ({ type }) => type },
      { title: "id or path", value: ({ id }) => id },
      { title: "data or detail", value: ({ about }) => about },
    ],
    "The delivery would produce no events.",
  );
}
