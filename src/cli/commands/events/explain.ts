import type { Command } from "commander";
import type { Explanation } from "../../../resources/apps/explain.ts";
import type { ExplainedItemEntity } from "../../../resources/events/explained-item.ts";
import { appOptions, createAction, examples } from "../../client/command.ts";
import { type DeliveryOptions, deliveryOptions, readDelivery } from "../../client/delivery.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import type { Output } from "../../output/output.ts";

export function define(command: Command, context: CommandContext): void {
  deliveryOptions(appOptions(command).argument("<channel>", "uid or id of the channel"))
    .option("--verify", "verify the delivery too; by default, verification is skipped")
    .action(
      createAction<[string], DeliveryOptions & { readonly verify?: boolean }>(
        context,
        async ({ api, output, appPath, io }, [channel], options) => {
          const { method, headers, query, body } = await readDelivery(api, io, options);
          const result = await api.post<Explanation>(await appPath("channels", channel, "explain"), {
            method,
            headers,
            query,
            body: body.toString("base64"),
            bodyEncoding: "base64",
            verify: options.verify === true,
          });
          if (output.isJson) output.one(result);
          else show(result, output);
          const fails =
            result.verification.result === "refused" ||
            result.items.some(({ failures }) => failures.length > 0);
          return fails ? EXIT.failed : EXIT.done;
        },
      ),
    );
  examples(command, [
    ['inlet explain inbox --data \'{"hello":"world"}\'', "a JSON body"],
    ["inlet explain calls --method GET --query 'status=done'", "a query instead of a body"],
    ["inlet explain hooks --preset github", "the provider's sample"],
    ["inlet explain hooks --data @push.json -H 'x-github-event: push'", "a file with headers"],
  ]).addHelpText(
    "after",
    "\nNo events are published. Exits with 1 if the delivery would be rejected or an item quarantined.",
  );
}

function show({ verification, received, items }: Explanation, output: Output): void {
  const { result, message } = verification;
  output.note(`verification: ${result}${message === null ? "" : ` (${message})`}; ${received} items`);
  showItems(items, output);
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
