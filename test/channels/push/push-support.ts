import type { ChannelHandle } from "../../../src/event/ingest.ts";

/** A webhook channel that accepts any content type. */
export const pushChannel = (maxBodyBytes: number, organizationId = "org_1"): ChannelHandle => ({
  identity: { number: 1, uid: "in", kind: "webhook", appId: "app_1", organizationId },
  state: "active",
  limits: { maxBodyBytes, maxDepth: 128 },
  settings: {},
  methods: ["POST"],
  answer: "outcome",
  acceptsContentType: () => true,
});
