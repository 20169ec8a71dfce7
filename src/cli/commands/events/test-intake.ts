import { isQueryMethod } from "../../../event/methods.ts";
import type { TestedIntake } from "../../../resources/apps/intakes/test-event.ts";
import { type OutgoingRequest, splitTarget } from "../../../verify/sign/place.ts";
import { formatPath } from "../../client/api.ts";
import { findBlueprint } from "../../client/blueprint.ts";
import type { Client } from "../../client/command.ts";
import { EXIT, type ExitCode } from "../../exit.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<TestedIntake["groups"][number]>[] = [
  { title: "route key", value: ({ routeKey }) => routeKey },
  { title: "outcome", value: ({ result }) => result, colors: { routed: "green", "*": "red" } },
  { title: "app", value: ({ appId }) => appId },
  { title: "events", value: ({ published }) => published },
  { title: "failed", value: ({ failed }) => failed },
  { title: "detail", value: ({ detail }) => detail, wraps: true },
];

/** Returns a delivery in the form in which requests to the API contain one. */
export const toGiven = ({ method, headers, target, body }: OutgoingRequest) => ({
  method,
  headers,
  query: splitTarget(target)[1],
  ...(isQueryMethod(method) ? {} : { body: body.toString("base64"), bodyEncoding: "base64" }),
});

/** Sends a delivery through the intake of a blueprint as test events. */
export async function testIntake(
  { api, output }: Client,
  named: string,
  request: OutgoingRequest,
): Promise<ExitCode> {
  const { id } = await findBlueprint(api, named);
  const path = formatPath("blueprints", id, "intake", "test");
  const tested = await api.post<TestedIntake>(path, toGiven(request));
  const { verification, groups } = tested;
  if (output.isJson) output.one(tested);
  else {
    const { result, message } = verification;
    output.note(`verification: ${result}${message === null ? "" : ` (${message})`}`);
    output.list(groups, COLUMNS, "The delivery has no items.");
  }
  const isDone = groups.every(({ result, failed }) => result === "routed" && !failed);
  return isDone ? EXIT.done : EXIT.failed;
}
