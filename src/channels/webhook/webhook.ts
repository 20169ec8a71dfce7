import { ApiError } from "../../http/problem.ts";
import { BODY_ROOT, HEADERS_ROOT, type RootSource } from "../../normalize/profile.ts";
import { needsSetup } from "../../verify/sender.ts";
import type { ChannelKind } from "../kind.ts";
import { createTakeDelivery } from "../push/take-delivery.ts";
import { webhookSettings } from "./settings.ts";

/** An external system sends its own format to the channel's address. */
export const webhook: ChannelKind = {
  kind: "webhook",
  settings: webhookSettings,
  secretSettings: ["secrets"],
  addressed: true,
  profile: {
    roots: new Map<string, RootSource>([
      ["headers", HEADERS_ROOT],
      ["query", { valueIn: ({ delivery }) => delivery.query }],
      ["body", BODY_ROOT],
    ]),
  },
  needsSetup,
  async start({ ingest, clock }) {
    const takeDelivery = createTakeDelivery({ ingest, clock });
    return {
      async receive(channel, c) {
        const { methods } = channel;
        if (!methods.includes(c.req.method)) {
          const allow = methods.join(", ");
          throw new ApiError("method_not_allowed", `This address takes ${allow}.`, { headers: { allow } });
        }
        return takeDelivery(channel, c);
      },
      async [Symbol.asyncDispose]() {},
    };
  },
};
