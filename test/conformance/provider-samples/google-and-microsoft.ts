import type { Emulator, Hook } from "../../support/providers/emulator.ts";
import { startGmail } from "../../support/providers/gmail.ts";
import { startGoogleCalendar, startGoogleDrive } from "../../support/providers/google-push.ts";
import { startMicrosoftGraph } from "../../support/providers/microsoft-graph.ts";
import {
  type ApiRequest,
  OUR_SECRET,
  type ProviderSamples,
  STARTED_AT_MS,
} from "../provider-emulator.suite.ts";

const DAY_MS = 86_400_000;

const secondsAhead = (seconds: number): string => new Date(STARTED_AT_MS + seconds * 1_000).toISOString();

const subscription = (notificationUrl: string, seconds: number): ApiRequest => ({
  on: "POST /v1.0/subscriptions",
  json: {
    changeType: "created",
    notificationUrl,
    lifecycleNotificationUrl: notificationUrl,
    resource: "me/messages",
    expirationDateTime: secondsAhead(seconds),
    clientState: OUR_SECRET,
  },
});

const google = (path: string, days: number): Omit<ProviderSamples, "preset" | "start"> => {
  const [, api = ""] = path.split("/");
  return {
    create: (address) => ({
      on: `POST ${path}`,
      json: {
        id: "our-channel",
        type: "web_hook",
        address,
        token: OUR_SECRET,
        expiration: STARTED_AT_MS + 60 * DAY_MS,
      },
    }),
    remove: ({ id, resourceId }: Hook & { resourceId?: string }) => ({
      on: `POST /${api}/v3/channels/stop`,
      json: { id, resourceId },
    }),
    invalid: [{ on: `POST ${path}`, json: { type: "web_hook" } }, [400, "required"]],
    unauthorized: [401, "authError"],
    limited: [403, "insufficientPermissions"],
    gone: [404, "Channel 'our-channel' not found"],
    quota: [403, "rateLimitExceeded"],
    exists: [400, "channelIdNotUnique"],
    lifetimeMs: days * DAY_MS,
    handshakes: 1,
    idPath: "none",
  };
};

export const GOOGLE_AND_MICROSOFT: readonly ProviderSamples[] = [
  {
    preset: "google-drive",
    start: startGoogleDrive,
    ...google("/drive/v3/changes/watch?pageToken=1", 7),
  },
  {
    preset: "google-calendar",
    start: startGoogleCalendar,
    ...google("/calendar/v3/calendars/primary/events/watch", 30),
  },
  {
    preset: "gmail",
    start: startGmail,
    fetchKeys: ({ keys = "" }: Emulator & { keys?: string }) => keys,
    prepare: (pushEndpoint) => ({
      on: "PUT /v1/projects/ours/subscriptions/gmail",
      json: {
        topic: "projects/ours/topics/gmail",
        pushConfig: {
          pushEndpoint,
          oidcToken: { serviceAccountEmail: "push@ours.iam.gserviceaccount.com" },
        },
      },
    }),
    create: () => ({
      on: "POST /gmail/v1/users/me/watch",
      json: { topicName: "projects/ours/topics/gmail", labelIds: ["INBOX"] },
    }),
    renew: () => ({
      on: "POST /gmail/v1/users/me/watch",
      json: { topicName: "projects/ours/topics/gmail", labelIds: ["INBOX"] },
    }),
    remove: () => ({ on: "POST /gmail/v1/users/me/stop" }),
    invalid: [
      { on: "POST /gmail/v1/users/me/watch", json: { topicName: "gmail" } },
      [400, "Invalid topicName"],
    ],
    unauthorized: [401, "authError"],
    limited: [403, "insufficientPermissions"],
    lifetimeMs: 7 * DAY_MS,
    idPath: "$.message.messageId",
    isSingle: true,
  },
  {
    preset: "microsoft-graph",
    start: startMicrosoftGraph,
    create: (address) => subscription(address, 3_600),
    list: { on: "GET /v1.0/subscriptions" },
    check: ({ id }) => ({ on: `GET /v1.0/subscriptions/${id}` }),
    renew: ({ id }) => ({
      on: `PATCH /v1.0/subscriptions/${id}`,
      json: { expirationDateTime: secondsAhead(2 * 3_600 - 1) },
    }),
    update: ({ id }, notificationUrl) => ({
      on: `PATCH /v1.0/subscriptions/${id}`,
      json: { notificationUrl },
    }),
    remove: ({ id }) => ({ on: `DELETE /v1.0/subscriptions/${id}` }),
    invalid: [
      subscription("http://127.0.0.1:9/hooks/ch_1", 4_231 * 60),
      [400, "Subscription expiration can only be 4230 minutes in the future."],
    ],
    unauthorized: [401, "InvalidAuthenticationToken"],
    limited: [403, "ErrorAccessDenied"],
    gone: [404, "ResourceNotFound"],
    quota: [403, "limit of 1 subscriptions"],
    lifetimeMs: 3_600_000,
    handshakes: 2,
    idPath: "none",
  },
];
