/** A tool for agents. It calls one operation of the management API with the caller's token, so the API checks it like any request. */
export interface ToolSpec {
  readonly name: string;
  /** `operationId` of the API operation. */
  readonly operation: string;
  readonly title: string;
  /** Explains to a model which question the tool answers, and which tool supplies its arguments. */
  readonly description: string;
  /** Whether the tool changes something. */
  readonly writes?: true;
  /** Whether results contain text that external senders wrote. */
  readonly isUntrusted?: true;
}

/** All tools, in the order in which an agent needs them to find out why an event is missing. */
export const TOOLS: readonly ToolSpec[] = [
  {
    name: "list_apps",
    operation: "listApps",
    title: "List apps",
    description:
      "Lists the installed apps. Start here: nearly every other tool needs an app's `id` as `appId`. An app groups the channels through which events arrive.",
  },
  {
    name: "list_channels",
    operation: "listChannels",
    title: "List channels",
    description:
      "Lists the channels of an app: kind (webhook, polling, sse, cloudevents), address, state, settings and event definitions. Use it to see where events come from, and whether a channel is paused or needs setup. Supplies `channelId`. Addresses need the permission channels.read.",
  },
  {
    name: "show_catalog",
    operation: "listCatalog",
    title: "Show the event types of an app",
    description:
      "Lists the event types that an app can publish, with the JSON Schema and an example of their data. Also shows how many events were published in the last 24 hours, and when the newest one was. Use it for `Which events are there?`, `What does this event contain?` and `How many events came today?` Its `agents` says whether agents may subscribe to the type.",
    isUntrusted: true,
  },
  {
    name: "list_problems",
    operation: "listProblems",
    title: "List problems",
    description:
      "Lists what Inlet has found wrong: silent channels, rejected deliveries, failing handlers, expiring registrations, events that differ from their schema, growing lag. Each problem says what happened and what to do. Use it first for general questions such as `Is everything all right?` or `Why does nothing arrive?`",
  },
  {
    name: "show_source",
    operation: "getSource",
    title: "Show a source",
    description:
      "Shows the live state of a polling or SSE channel: last attempt, last error, next attempt, position, missed deliveries found. Use it when a channel that fetches its events is silent. Needs `channelId` from list_channels.",
    isUntrusted: true,
  },
  {
    name: "list_deliveries",
    operation: "listDeliveries",
    title: "List recent deliveries",
    description:
      "Lists sampled recent deliveries from providers with their outcome: published, duplicate, ignored, quarantined (stored, not published) or rejected (not stored, 4xx response), and why. Calls to handlers are not deliveries: see list_subscriptions. Use it for `Did the provider send anything?`, `What did Inlet do with it?` and `Why did this event not arrive?` Select by channel, `status` and time (`from`, `to`). `eventId` only finds events that were published. Supplies `deliveryId`.",
    isUntrusted: true,
  },
  {
    name: "show_delivery",
    operation: "getDelivery",
    title: "Show a delivery",
    description:
      "Shows one stored delivery with its headers and body. Use it after list_deliveries to look at the request that a sender really sent.",
    isUntrusted: true,
  },
  {
    name: "list_quarantine",
    operation: "listQuarantine",
    title: "List quarantined items",
    description:
      "Lists items that arrived but were not published, with the reason: invalid signature, schema mismatch, no matching definition, id conflict, or a pause that resume_channel ends. Use it for `What is stuck?`, and if deliveries arrive but no event appears. Supplies `itemId`.",
    isUntrusted: true,
  },
  {
    name: "show_quarantined_item",
    operation: "getQuarantinedItem",
    title: "Show a quarantined item",
    description:
      "Shows one quarantined item with its body and the exact errors. Use it after list_quarantine to find out how to correct the definition or the sender.",
    isUntrusted: true,
  },
  {
    name: "explain_delivery",
    operation: "explainDelivery",
    title: "Explain a delivery",
    description:
      "Runs a delivery through a channel without publishing anything, and shows each step: verification, items, matching definition, extracted type and id, schema errors. Use it to answer `Would this be accepted?` and `Why was this not published?`, or to try other definitions in `events`, such as another `typePath`. Give `headers` and `body`, for example from show_delivery. Set `verify: false` for a stored delivery, because it is not signed again.",
    isUntrusted: true,
  },
  {
    name: "list_events",
    operation: "listEvents",
    title: "List events",
    description:
      "Lists published events of an app, as CloudEvents with their whole payload. Use it for `Show me the latest events` and `What was in event evt_1?` Filter by `type`, `channel` (a channel's uid), time (`from`, `to`), event `id`, or a value at a JSONPath. Set `order` to `newest` for the latest events. An event that is missing here was not published: continue with list_deliveries and list_quarantine. Supplies `topic` and `entryId`.",
    isUntrusted: true,
  },
  {
    name: "show_event",
    operation: "getEvent",
    title: "Show an event",
    description:
      "Shows one published event, for example if the result of list_events was cut. Needs its `topic` and `entryId` from list_events.",
    isUntrusted: true,
  },
  {
    name: "list_subscriptions",
    operation: "listSubscriptions",
    title: "List subscriptions",
    description:
      "Lists who consumes the events of an app: handlers that Inlet calls over HTTP, and readers of Redis. Shows state, lag and last error of each. Dead letters are in show_lag. Use it for `Who gets our events?` and `Why does our handler get nothing?` Supplies `subscriptionId`.",
  },
  {
    name: "show_lag",
    operation: "getSubscriptionLag",
    title: "Show the lag of a subscription",
    description:
      "Shows how many events a subscription has not processed yet, how old the oldest one is, and how many events failed for good (dead letters). Use it for `Is the consumer behind?` Needs `subscriptionId` from list_subscriptions.",
  },
  {
    name: "redrive_quarantine",
    operation: "redriveMany",
    title: "Publish quarantined items again",
    description:
      "Sends quarantined items of an app through their channel again, after the cause was corrected. Use it for `Send the quarantined ones again`. Look at them with list_quarantine first, and select them by channel, `reason` or time. Events that were already published are recognized as duplicates.",
    writes: true,
  },
  {
    name: "pause_channel",
    operation: "pauseChannel",
    title: "Pause a channel",
    description:
      "Pauses a channel, so that no more of its events are published to anyone. Needs `channelId` from list_channels. The pause has no end: use resume_channel. A paused webhook channel still stores deliveries and publishes them after resume_channel. A paused source fetches nothing.",
    writes: true,
  },
  {
    name: "resume_channel",
    operation: "resumeChannel",
    title: "Resume a channel",
    description:
      "Resumes a paused channel. Stored deliveries are published in order, without redrive_quarantine. Needs `channelId` from list_channels.",
    writes: true,
  },
  {
    name: "pause_subscription",
    operation: "pauseSubscription",
    title: "Pause a subscription",
    description:
      "Stops calls to the handler of a subscription. Needs `subscriptionId` from list_subscriptions. Its events wait in their topics until resume_subscription. Channels still publish.",
    writes: true,
  },
  {
    name: "resume_subscription",
    operation: "resumeSubscription",
    title: "Resume a subscription",
    description: "Resumes calls to the handler of a paused subscription.",
    writes: true,
  },
  {
    name: "replay_events",
    operation: "replaySubscription",
    title: "Replay events to a subscription",
    description:
      "Sends events that were published before to the handler of a subscription again (needs `subscriptionId` from list_subscriptions), for example after a bug in the handler was fixed. Select them by time (`from`, `to`), `types` or `entries`. Set `dryRun` to count them first. The handler receives events that it may already know.",
    writes: true,
  },
];
