import { hash } from "node:crypto";
import type { ChannelIdentity } from "../event/channel.ts";
import { KEY_EXTENSION, TRACE_EXTENSION, VIA_EXTENSION } from "../event/cloud-event.ts";
import { ANY_DIGEST, type OutgoingEvent, type SignedMark } from "../event/event.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import { formatTimestamp } from "../lib/clock.ts";
import { validTraceparent } from "../lib/traceparent.ts";
import type { Rule } from "./compile.ts";
import type { OwnAttributes } from "./event-attributes.ts";
import type { CloudEvent, Item } from "./item.ts";
import type { Payload } from "./item-reader.ts";
import type { EventId } from "./profile.ts";
import { formatSource, type RuleSet } from "./rule-set.ts";

/**
 * Length of an event's identity in base64url characters. 22 characters hold 132 bits, which makes a collision (and thus a lost
 * event) practically impossible.
 */
const IDENTITY_CHARS = 22;
/** Length of a data digest in base64url characters. 11 characters hold 66 bits. */
const DIGEST_CHARS = 11;

export interface Envelope {
  readonly source: string;
  readonly time: string;
  /** That of the span that publishes the event, or else that of the sender. */
  readonly traceparent: string | undefined;
  /** The delivery's `traceparent`. */
  readonly ownTraceparent: string | undefined;
  /**
   * Internal channel id, which is part of every event identity. A recreated channel reuses the topics, and its events must not
   * match those of the old channel.
   */
  readonly channelNumber: number;
  readonly rules: RuleSet;
  readonly reconciled: VerifiedDelivery["reconciled"];
}

export function createEnvelope(rules: RuleSet, delivery: VerifiedDelivery): Envelope {
  const { channel, source } = rules;
  return {
    rules,
    source,
    time: formatTimestamp(delivery.arrivedAtMs),
    traceparent: delivery.traceparent ?? validTraceparent(delivery.headers.traceparent),
    ownTraceparent: delivery.traceparent,
    channelNumber: channel.number,
    reconciled: delivery.reconciled,
  };
}

/**
 * Creates the stream entry of an event in CloudEvents 1.0 format, with one field per attribute.
 *
 * @param own attributes that the definition reads from the item
 * @param comparedHash hash of the data by which the event is compared with an earlier one of the same identity
 */
export function createEvent(
  envelope: Envelope,
  rule: Rule,
  { event }: Item,
  item: OutgoingEvent["item"],
  { id, remembered }: EventId,
  payload: Payload,
  comparedHash = payload.hash,
  own?: OwnAttributes,
): OutgoingEvent {
  const { type } = rule;
  const { reconciled, rules, ownTraceparent } = envelope;
  const topic = getRuleTopic(rules, rule);
  const digest = reconciled?.match === "id" ? ANY_DIGEST : comparedHash.slice(0, DIGEST_CHARS);
  const dataschema = getDataSchema(rules, rule);
  const fields =
    event === undefined
      ? createFields(envelope, type, id, payload, own, dataschema)
      : copyCloudEventFields(envelope, event, id, payload, dataschema);
  if (reconciled !== undefined) fields.push(VIA_EXTENSION, "poll");
  if (ownTraceparent !== undefined) fields.push(TRACE_EXTENSION, ownTraceparent);
  // With `idAndData`, an event with the same id but different data counts as new.
  const identified = rules.conflictRule.identity === "idAndData" ? `\n${digest}` : "";
  const identity =
    remembered === undefined ? "" : computeIdentity(`${envelope.channelNumber}\n${remembered}${identified}`);
  let bytes = payload.bytes - (payload.data?.length ?? 0);
  for (const field of fields) bytes += field.length;
  const created = { id, type, topic, item, identity, digest, fields, bytes };
  return own === undefined || own.unset.length === 0 ? created : { ...created, unset: own.unset };
}

/** Returns the topic to which a rule publishes. */
export const getRuleTopic = (
  { topics, topicPrefix }: Pick<RuleSet, "topics" | "topicPrefix">,
  { type, topicSuffix }: Pick<Rule, "type" | "topicSuffix">,
): string => (topics.size === 0 ? undefined : topics.get(type)) ?? topicPrefix + topicSuffix;

/** Returns the URL of the schema version that the data was validated with. `undefined` if the definition has no stored schema. */
function getDataSchema({ schemaNames }: RuleSet, { type, schemaSuffix }: Rule): string | undefined {
  if (schemaNames === undefined || schemaSuffix === undefined) return undefined;
  const version = schemaNames.versions.get(type);
  return version === undefined ? undefined : `${schemaNames.baseUrl}/${schemaSuffix}/${version}`;
}

/** An event that the gateway itself creates, with JSON data. */
export interface SystemEvent {
  readonly channel: Omit<ChannelIdentity, "kind">;
  readonly topic: string;
  readonly type: string;
  readonly id: string;
  readonly atMs: number;
  readonly subject: string;
  readonly data: string;
}

/** Creates the stream entry of an event that the gateway itself publishes. The same id always yields the same entry. */
export function createSystemEvent({
  channel,
  topic,
  type,
  id,
  atMs,
  subject,
  data,
}: SystemEvent): OutgoingEvent {
  const fields = ["specversion", "1.0", "id", id, "source", formatSource(channel), "type", type];
  fields.push("time", formatTimestamp(atMs), "datacontenttype", "application/json", "data", data);
  fields.push("subject", subject);
  const digest = computeIdentity(data).slice(0, DIGEST_CHARS);
  const bytes = Buffer.byteLength(fields.join(""));
  return {
    id,
    type,
    topic,
    item: null,
    identity: computeIdentity(`${channel.number}\n${id}`),
    digest,
    fields,
    bytes,
  };
}

/**
 * Creates the mark that detects replays of a delivery. It combines the signed bytes with a digest of the resulting event ids and
 * types.
 *
 * @param signedBytes digest of the signed bytes (`boundTo` of the delivery)
 */
export function createSignedMark(
  { channel }: RuleSet,
  signedBytes: string,
  events: readonly OutgoingEvent[],
): SignedMark {
  const names = events.map(({ id, type }) => JSON.stringify([type, id])).sort();
  return {
    identity: computeIdentity(`${channel.number}\n${signedBytes}`),
    digest: computeIdentity(names.join()).slice(0, DIGEST_CHARS),
  };
}

function createFields(
  { source, time, traceparent }: Envelope,
  type: string,
  id: string,
  payload: Payload,
  own: OwnAttributes | undefined,
  dataschema: string | undefined,
): string[] {
  const at = own?.time ?? time;
  const fields = ["specversion", "1.0", "id", id, "source", source, "type", type, "time", at];
  pushData(fields, payload);
  if (own?.subject !== undefined) fields.push("subject", own.subject);
  if (dataschema !== undefined) fields.push("dataschema", dataschema);
  if (traceparent !== undefined) fields.push("traceparent", traceparent);
  if (own?.key !== undefined) fields.push(KEY_EXTENSION, own.key);
  return fields;
}

/**
 * Copies the attributes of a sender's CloudEvent. An event without `traceparent` gets that of the request header, and an event without
 * `dataschema` gets that of the definition.
 */
function copyCloudEventFields(
  { traceparent }: Envelope,
  event: CloudEvent,
  id: string,
  payload: Payload,
  dataschema: string | undefined,
): string[] {
  const { attributes, source, type } = event;
  const fields = ["specversion", "1.0", "id", id, "source", source, "type", type];
  const push = (name: string, value = attributes.get(name)): void => {
    if (value !== undefined) fields.push(name, value);
  };
  push("time");
  pushData(fields, payload);
  push("subject");
  push("dataschema", attributes.get("dataschema") ?? dataschema);
  push("traceparent", attributes.get("traceparent") ?? traceparent);
  for (const [name, value] of attributes) {
    if (!ORDERED_ATTRIBUTES.has(name) && !name.startsWith(OWN_PREFIX)) fields.push(name, value);
  }
  return fields;
}

/** Prefix of the extensions that only Inlet sets, such as the mark of test events. Those of a sender are dropped. */
const OWN_PREFIX = "inlet";

/** Attributes with a fixed position in every stream entry. CloudEvents extensions follow after them. */
const ORDERED_ATTRIBUTES: ReadonlySet<string> = new Set([
  "time",
  "datacontenttype",
  "subject",
  "dataschema",
  "traceparent",
]);

function pushData(fields: string[], { contentType, data, isBase64 }: Payload): void {
  if (contentType !== undefined) fields.push("datacontenttype", contentType);
  if (data !== undefined) fields.push(isBase64 ? "data_base64" : "data", data);
}

const computeIdentity = (text: string): string => hash("sha256", text, "base64url").slice(0, IDENTITY_CHARS);
