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

/** The arguments of EVALSHA after the script: number of keys, keys, ARGV; publish.lua describes them. */
export function encodeCall(
  groups: readonly PublishGroup[],
  settings: {
    /** True where a WAIT follows, which must cover duplicates too. */
    readonly mustWrite: boolean;
    readonly quarantineLimits: string;
  },
): (string | Buffer)[] {
  const keys: string[] = [];
  const places = new Map<string, number>();
  const placeOf = (key: string): number => {
    let place = places.get(key);
    if (place === undefined) {
      place = keys.push(key);
      places.set(key, place);
    }
    return place;
  };
  const args: (string | Buffer)[] = [settings.mustWrite ? "1" : "0", settings.quarantineLimits];
  for (const group of groups) encodeGroup(group, args, placeOf);
  return [String(keys.length), ...keys, ...args];
}

function encodeGroup(group: PublishGroup, args: (string | Buffer)[], placeOf: (key: string) => number): void {
  const { events, position, quarantine, release, signed } = group;
  const parts =
    (position ? 1 : 0) +
    (quarantine ? 2 : 0) +
    (release ? 4 : 0) +
    (signed ? 8 : 0) +
    (group.isReplay ? 16 : 0);
  args.push(`${group.policy} ${events.length} ${parts}`);
  if (position) {
    const { source, at, cursor } = position;
    args.push(String(source), String(at.epoch), String(at.version));
    if (cursor === undefined) args.push("0");
    else if (cursor.commits) {
      args.push(String(-placeOf(cursor.key)), at.value === undefined ? "=" : `>${at.value}`);
    } else args.push(String(placeOf(cursor.key)));
  }
  if (quarantine) args.push(String(placeOf(quarantine.budgetKey)), ...quarantine.args);
  if (release) args.push(String(placeOf(release.budgetKey)), String(release.ids.length), ...release.ids);
  if (signed) args.push(String(placeOf(signed.memoryKey)), signed.mark);
  for (const event of events) encodeEvent(event, args, placeOf(event.topic));
}

/**
 * An entry's field names take as long to send and to read as its short values: the usual entry goes without.
 */
function encodeEvent(event: OutgoingEvent, args: (string | Buffer)[], place: number): void {
  const { fields } = event;
  const mark = event.identity === "" ? "" : event.identity + event.digest;
  if (!isUsual(fields)) {
    args.push(`${place} ${fields.length}`, mark, ...fields);
    return;
  }
  const [, , , id = "", , source = "", , type = "", , time = "", , contentType = "", , data = ""] = fields;
  args.push(`${place} 0\n${source}\n${type}\n${contentType}`, mark, id, time, data);
}

/** Each of its short values is sent on a line of its own, so none may hold a line break. */
function isUsual(fields: readonly string[]): boolean {
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
