import { hasUsualNames } from "../../event/cloud-event.ts";
import type { OutgoingEvent } from "../../event/event.ts";
import type { SourcePosition } from "../../event/received.ts";
import type { EncodedQuarantine } from "../quarantine/quarantine-record.ts";

/** A part of a delivery that one script call writes as a whole. Where its keys lie is the caller's care. */
export interface PublishGroup {
  readonly policy: string;
  readonly events: readonly OutgoingEvent[];
  readonly position?: GroupPosition | undefined;
  readonly quarantine?: EncodedQuarantine | undefined;
  readonly release?: { readonly budgetKey: string; readonly ids: readonly string[] } | undefined;
  /** The signed bytes of the delivery, in the memory of its channel. */
  readonly signed?: { readonly memoryKey: string; readonly mark: string } | undefined;
  /** Its signed bytes are known under other ids or types: nothing of it is published. */
  readonly isReplay?: boolean;
  /** Estimated size, of which a call takes only so much. */
  readonly bytes: number;
}

interface GroupPosition {
  readonly source: number;
  readonly at: SourcePosition;
  /** Absent: the cursor lies in another slot, and only the topics' epochs are checked. */
  readonly cursor?: { readonly key: string; readonly commits: boolean };
}

type Arg = string | Buffer;

/** The arguments of EVALSHA after the script: number of keys, keys, ARGV; publish.lua and publish-group.lua describe them. */
export function encodeCall(
  groups: readonly PublishGroup[],
  settings: {
    /** True where a WAIT follows, which must cover duplicates too. */
    readonly mustWrite: boolean;
    readonly quarantineLimits: string;
  },
): Arg[] {
  const call: Call = { args: [], keys: new Numbered(), forms: new Numbered(), lastForms: new Map() };
  for (const group of groups) encodeGroup(group, call);
  const { args, keys, forms } = call;
  return [
    String(keys.texts.length),
    ...keys.texts,
    settings.mustWrite ? "1" : "0",
    settings.quarantineLimits,
    String(forms.texts.length),
    ...forms.texts,
    ...args,
  ];
}

interface Call {
  readonly args: Arg[];
  readonly keys: Numbered;
  readonly forms: Numbered;
  /** The last one of each topic: mostly that of its next event too, whose text need not be made then. */
  readonly lastForms: Map<string, Form>;
}

interface Form {
  readonly number: string;
  readonly policy: string;
  readonly memoryKey: string | undefined;
  /** Of the entry's strings; 0 where the form holds all but three values. */
  readonly count: number;
  readonly source: string | undefined;
  readonly type: string | undefined;
  readonly contentType: string | undefined;
}

/** Texts that a call holds once, by their numbers from 1. */
class Numbered {
  readonly texts: string[] = [];
  readonly #numbers = new Map<string, string>();

  of(text: string): string {
    let number = this.#numbers.get(text);
    if (number === undefined) {
      number = String(this.texts.push(text));
      this.#numbers.set(text, number);
    }
    return number;
  }
}

function encodeGroup(group: PublishGroup, call: Call): void {
  const { events, position, quarantine, release, signed, isReplay = false } = group;
  const { args, keys } = call;
  const [event] = events;
  if (event !== undefined && events.length === 1 && !position && !quarantine && !release && !isReplay) {
    encodeEvent(event, group.policy, signed, call);
    return;
  }
  const parts =
    (position ? 1 : 0) + (quarantine ? 2 : 0) + (release ? 4 : 0) + (signed ? 8 : 0) + (isReplay ? 16 : 0);
  args.push(`${group.policy} ${events.length} ${parts}`);
  if (position) {
    const { source, at, cursor } = position;
    args.push(String(source), String(at.epoch), String(at.version));
    if (cursor === undefined) args.push("0");
    else if (cursor.commits) {
      args.push(`-${keys.of(cursor.key)}`, at.value === undefined ? "=" : `>${at.value}`);
    } else args.push(keys.of(cursor.key));
  }
  if (quarantine) args.push(keys.of(quarantine.budgetKey), ...quarantine.args);
  if (release) args.push(keys.of(release.budgetKey), String(release.ids.length), ...release.ids);
  if (signed) args.push(keys.of(signed.memoryKey), signed.mark);
  for (const one of events) encodeEvent(one, group.policy, undefined, call);
}

/** Only what differs from event to event is sent with each: in Redis a string costs about as much as its length. */
function encodeEvent(event: OutgoingEvent, policy: string, signed: PublishGroup["signed"], call: Call): void {
  const { args } = call;
  const { fields } = event;
  const form = formOf(event, policy, signed?.memoryKey, call);
  args.push(form.number, event.identity === "" ? "" : event.identity + event.digest);
  if (signed) args.push(signed.mark);
  if (form.count === 0) args.push(fields[3] ?? "", fields[9] ?? "", event.large?.bytes ?? fields[13] ?? "");
  else {
    const first = args.length;
    args.push(...fields);
    if (event.large !== undefined) args[first + event.large.at] = event.large.bytes;
  }
}

function formOf(
  { topic, fields }: OutgoingEvent,
  policy: string,
  memoryKey: string | undefined,
  { keys, forms, lastForms }: Call,
): Form {
  const isUsual = hasUsualNames(fields);
  const source = isUsual ? fields[5] : undefined;
  const type = isUsual ? fields[7] : undefined;
  const contentType = isUsual ? fields[11] : undefined;
  const last = lastForms.get(topic);
  if (
    last !== undefined &&
    last.policy === policy &&
    last.memoryKey === memoryKey &&
    last.source === source &&
    last.type === type &&
    last.contentType === contentType &&
    (isUsual ? last.count === 0 : last.count === fields.length)
  )
    return last;
  // Each of the values has a line of its own, so none but the last may hold a line break.
  const count = isUsual && !source?.includes("\n") && !type?.includes("\n") ? 0 : fields.length;
  const places = `${keys.of(topic)} ${memoryKey === undefined ? "0" : keys.of(memoryKey)}`;
  const common = count === 0 ? `\n${source}\n${type}\n${contentType}` : "";
  const number = forms.of(`${policy} ${places} ${count}${common}`);
  const form = { number, policy, memoryKey, count, source, type, contentType };
  lastForms.set(topic, form);
  return form;
}
