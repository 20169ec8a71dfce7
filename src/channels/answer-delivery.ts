import type { IngestResult } from "../event/ingest.ts";
import { ApiError, invalidParameters } from "../http/problem.ts";
import type { HookContext } from "./kind.ts";

/**
 * What a sender is told. 200 is the promise that every event is on its stream.
 *
 * @throws ApiError for all that is not accepted.
 */
export function answerDelivery(c: HookContext, result: IngestResult): Response {
  switch (result.kind) {
    case "accepted":
      return c.json(result.outcome);
    case "unverified":
      throw new ApiError("unauthenticated", "The request could not be verified.");
    case "tooManyItems":
      throw new ApiError("payload_too_large", `The delivery holds more than ${result.limit} items.`);
    case "rejected":
      throw invalidParameters(
        result.failures.map(({ item, reason, path, detail }) => ({
          path: `${item === null ? "body" : `items[${item}]`}${path === undefined ? "" : `: ${path}`}`,
          message: `${reason}: ${detail}`,
        })),
        "The channel refuses this delivery.",
      );
    default:
      return result satisfies never;
  }
}
