import { ApiError } from "../../http/problem.ts";
import { needsSetup } from "../../verify/sender.ts";
import { answerDelivery } from "../answer-delivery.ts";
import type { BodyBudget } from "../body-budget.ts";
import type { ChannelKind } from "../kind.ts";
import { readDelivery } from "../read-delivery.ts";
import { type CloudEventsSettings, cloudEventsSettings } from "./settings.ts";
import { createValidationRequests } from "./validation-request.ts";

/** Of all deliveries that are being read. */
const MAX_BODIES_BYTES = 256 * 1024 * 1024;
const BATCH = /^\s*application\/cloudevents-batch\b/i;

/** Senders post CloudEvents, in binary, structured or batched mode, to the channel's address. */
export const cloudevents: ChannelKind = {
  kind: "cloudevents",
  settings: cloudEventsSettings,
  secretSettings: ["secrets"],
  addressed: true,
  needsSetup,
  async start({ ingest, outbound, clock, log }) {
    const bodies: BodyBudget = { bytesLeft: MAX_BODIES_BYTES };
    const validations = createValidationRequests({ outbound, log });
    return {
      async receive(channel, c) {
        // The kind's own schema gave them.
        const { allowedOrigins, batch, limits } = channel.settings as CloudEventsSettings;
        const { method } = c.req;
        if (method === "OPTIONS" && !channel.methods.includes(method)) {
          return validations.answer(c, { allowedOrigins, requestsPerSecond: limits.requestsPerSecond });
        }
        if (!channel.methods.includes(method)) {
          const allow = [...channel.methods, ...(allowedOrigins.length > 0 ? ["OPTIONS"] : [])].join(", ");
          throw new ApiError("method_not_allowed", `This address takes ${allow}.`, { headers: { allow } });
        }
        if (batch === "refuse" && BATCH.test(c.req.header("content-type") ?? "")) {
          throw new ApiError("unsupported_media_type", "This channel takes no batches.");
        }
        const request = await readDelivery(c.env.incoming, channel, clock(), bodies);
        // A sender that hangs up does not undo its delivery: what was read is carried through.
        const result = await ingest(channel, request, { signal: NEVER_ABORTED });
        return answerDelivery(c, channel, result);
      },
      [Symbol.asyncDispose]: () => validations[Symbol.asyncDispose](),
    };
  },
};

const NEVER_ABORTED = new AbortController().signal;
