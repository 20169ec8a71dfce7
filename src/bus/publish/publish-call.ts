import type { OutgoingEvent } from "../../event/event.ts";
import type { SourcePosition } from "../../event/received.ts";
import type { EncodedQuarantine } from "../quarantine/quarantine-record.ts";

/** A part of a delivery that one script call writes as a whole. Where its keys lie is the caller's care. */
export interface PublishGroup {
  readonly policy: string;
  readonly events: readonly OutgoingEvent[];
  readonly position?: {
    readonly source: number;
    readonly at: SourcePosition;
    /** Absent: the cursor lies in another slot, and only the topics' epochs are checked. */
    readonly cursor?: { readonly key: string; readonly commits: boolean };
  };
  readonly quarantine?: EncodedQuarantine;
  readonly release?: { readonly budgetKey: string; readonly ids: readonly string[] };
  /** The signed bytes of the delivery, in the memory of its channel. */
  readonly signed?: { readonly memoryKey: string; readonly mark: string };
  /** Its signed bytes are known under other ids or types: nothing of it is published. */
  readonly isReplay?: boolean;
  /** Estimated size, of which a call takes only so much. */
  readonly bytes: number;
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
  const keys = new Numbered();
  const forms = new Numbered();
  const args: Arg[] = [];
  for (const group of groups) encodeGroup(group, { args, keys, forms });
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
function encodeEvent(
  event: OutgoingEvent,
  policy: string,
  signed: PublishGroup["signed"],
  { args, keys, forms }: Call,
): void {
  const { fields } = event;
  const places = `${policy} ${keys.of(event.topic)} ${signed ? keys.of(signed.memoryKey) : "0"}`;
  const isUsual = isUsualEntry(fields);
  const form = isUsual
    ? `${places} 0\n${fields[5]}\n${fields[7]}\n${fields[11]}`
    : `${places} ${fields.length}`;
  args.push(forms.of(form), event.identity === "" ? "" : event.identity + event.digest);
  if (signed) args.push(signed.mark);
  if (isUsual) args.push(fields[3] ?? "", fields[9] ?? "", fields[13] ?? "");
  else args.push(...fields);
}

/** Each of the values that stand in its form has a line of its own, so none but the last may hold a line break. */
function isUsualEntry(fields: readonly string[]): boolean {
  return (
    fields.length === 14 &&
    fields[0] === "specversion" &&
    fields[1] === "1.0" &&
    fields[2] === "id" &&
    fields[4] === "source" &&
    fields[6] === "type" &&
    fields[8] === "time" &&
    fields[10] === "datacontenttype" &&
    fields[12] === "data" &&
    !fields[5]?.includes("\n") &&
    !fields[7]?.includes("\n")
  );
}
