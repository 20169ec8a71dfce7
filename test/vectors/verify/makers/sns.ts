import { sign } from "node:crypto";
import { KEYS } from "./keys.ts";
import { answer, caseOf, json, type Recipe, type Sent, texts } from "./kit.ts";

const ID = "dde3ac43-a4d8-4c8b-8ff6-8e8a7ed1b3f1";
const TOPIC = "arn:aws:sns:us-west-2:123456789012:MyTopic";
const SNS_CERTIFICATE =
  "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem";
const SNS_CONFIRMATION = `https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=2336412f37`;

/** Message members that Amazon signs, in order. Each name and each value is a separate line. */
const SNS_SIGNED = [
  "Message",
  "MessageId",
  "Subject",
  "SubscribeURL",
  "Timestamp",
  "Token",
  "TopicArn",
  "Type",
];

function snsMessage(members: Readonly<Record<string, string>>, topic: string, version: "1" | "2"): Sent {
  const message: Record<string, string> = {
    MessageId: ID,
    TopicArn: topic,
    Timestamp: "2026-01-01T00:00:00.000Z",
    ...members,
  };
  const lines = SNS_SIGNED.flatMap((name) => (message[name] === undefined ? [] : [name, message[name]]));
  const signature = sign(
    version === "1" ? "sha1" : "sha256",
    Buffer.from(`${lines.join("\n")}\n`),
    KEYS.rsa[0].private,
  ).toString("base64");
  const body = {
    ...message,
    SignatureVersion: version,
    Signature: signature,
    SigningCertURL: SNS_CERTIFICATE,
  };
  return {
    headers: { "content-type": "text/plain; charset=UTF-8", "x-amz-sns-message-type": message.Type ?? "" },
    body: json(body),
  };
}
const snsNotification = (topic: string, version: "1" | "2"): Sent =>
  snsMessage({ Type: "Notification", Subject: "My First Message", Message: "Hello world!" }, topic, version);
const snsConfirmation = (topic: string): Sent =>
  snsMessage(
    {
      Type: "SubscriptionConfirmation",
      Message: `You have chosen to subscribe to the topic ${topic}.`,
      SubscribeURL: SNS_CONFIRMATION,
      Token: "2336412f37",
    },
    topic,
    "2",
  );

/** Amazon SNS signs with a fetched certificate. A visit to a URL confirms the subscription. */
export const sns: Recipe = {
  source: "https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html",
  secrets: texts(TOPIC, `${TOPIC}-next`, `${TOPIC}-of-another`),
  fetched: { [SNS_CERTIFICATE]: KEYS.rsa[0].certificate },
  sent: { headers: {}, body: "" },
  sign: (_, topic) => snsNotification(topic, "2"),
  alter: (sent) => ({ ...sent, body: sent.body.replace("Hello world!", "Hello worlds!") }),
  uncovered: (sent) => ({
    ...sent,
    body: sent.body.replace("{", '{"UnsubscribeURL":"https://example.com/",'),
  }),
  events: [{ type: "Notification", id: ID }],
  more: [
    caseOf({
      name: "a delivery with signature version 1",
      kind: "accept",
      secrets: [{ value: TOPIC }],
      request: snsNotification(TOPIC, "1"),
      expect: { events: [{ type: "Notification", id: ID }] },
    }),
    caseOf({
      name: "signature version 1 on a channel that does not allow it",
      kind: "altered",
      secrets: [{ value: TOPIC }],
      config: { verification: { scheme: "preset", algorithmFrom: { values: { 1: null } } } },
      request: snsNotification(TOPIC, "1"),
      expect: { refused: "malformed" },
    }),
    caseOf({
      name: "a certificate at a URL of another site",
      kind: "wrong secret",
      secrets: [{ value: TOPIC }],
      request: {
        ...snsNotification(TOPIC, "2"),
        body: snsNotification(TOPIC, "2").body.replace("amazonaws.com", "amazonaws.com.example.net"),
      },
      expect: { refused: "malformed" },
    }),
    caseOf({
      name: "the confirmation of the subscription",
      kind: "handshake",
      secrets: [{ value: TOPIC }],
      request: snsConfirmation(TOPIC),
      expect: { reply: answer(""), visit: SNS_CONFIRMATION },
    }),
    caseOf({
      name: "the confirmation of another topic",
      kind: "handshake",
      secrets: [{ value: TOPIC }],
      request: snsConfirmation(`${TOPIC}-of-another`),
      expect: { refused: "mismatch" },
    }),
  ],
};
