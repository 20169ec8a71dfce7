import { BODY_ROOT, HEADERS_ROOT, QUERY_ROOT, type RootSource } from "../../normalize/profile.ts";
import { needsSetup } from "../../verify/sender.ts";
import type { ChannelKind } from "../kind.ts";
import { webhookConfigSchema } from "./config.ts";

export const webhook: ChannelKind = {
  kind: "webhook",
  configSchema: webhookConfigSchema,
  secretFields: ["secrets"],
  addressed: true,
  profile: {
    roots: new Map<string, RootSource>([
      ["headers", HEADERS_ROOT],
      ["query", QUERY_ROOT],
      ["body", BODY_ROOT],
    ]),
    takesMethods: true,
  },
  installationFields: ["registration"],
  // The registration supplies the secret.
  needsSetup: (config, presets) => config.registration === undefined && needsSetup(config, presets),
  minimalDelivery: () => ({ headers: { "content-type": "application/json" }, body: '{"test":true}' }),
  async start() {
    return { push: {}, async [Symbol.asyncDispose]() {} };
  },
};
