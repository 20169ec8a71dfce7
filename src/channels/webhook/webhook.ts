import { ApiError } from "../../http/problem.ts";
import { needsSetup } from "../../verify/sender.ts";
import { answerDelivery } from "../answer-delivery.ts";
import type { BodyBudget } from "../body-budget.ts";
import type { ChannelKind } from "../kind.ts";
import { readDelivery } from "../read-delivery.ts";
import { webhookSettings } from "./settings.ts";

/** Of all deliveries that are being read. */
const MAX_BODIES_BYTES = 256 * 1024 * 1024;

/** An external system sends its own format to the channel's address. */
export const webhook: ChannelKind = {
  kind: "webhook",
  settings: webhookSettings,
  secretSettings: ["secrets"],
  addressed: true,
  needsSetup,
  async start({ ingest, clock }) {
    const bodies: BodyBudget = { bytesLeft: MAX_BODIES_BYTES };
    return {
      async receive(channel, c) {
        const { methods } = channel;
        if (!methods.includes(c.req.method)) {
          const allow = methods.join(", ");
          throw new ApiError("method_not_allowed", `This address takes ${allow}.`, { headers: { allow } });
        }
        const request = await readDelivery(c.env.incoming, channel, clock(), bodies);
        // A sender that hangs up does not undo its delivery: what was read is carried through.
        const result = await ingest(channel, request, { signal: NEVER_ABORTED });
        return answerDelivery(c, channel, result);
      },
      async [Symbol.asyncDispose]() {},
    };
  },
};

const NEVER_ABORTED = new AbortController().signal;
