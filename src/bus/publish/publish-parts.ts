import type { OutgoingEvent } from "../../event/event.ts";
import { computeSlot } from "../keys.ts";
import { CONFLICT, NO_WORDS, type PublishGroup, REPLAYED, splitWords } from "./publish-call.ts";
import { MAX_CALL_BYTES, MAX_CALL_EVENTS, type PendingDelivery, type SubmitGroup } from "./publish-lanes.ts";

/**
 * Returns a function that writes a delivery to a single Redis in ordered pieces. The first piece also writes new quarantine records. The
 * last piece deletes the processed quarantine records and moves the stored cursor.
 */
export function createWriteInOrder(submit: SubmitGroup) {
  const write = toAsync(submit);
  return async function writeInOrder(
    whole: PublishGroup,
    delivery: PendingDelivery,
  ): Promise<readonly string[]> {
    const { policy, events, position, quarantine, release, signed } = whole;
    const pieces = splitEvents(events);
    if (pieces.length <= 1) return splitWords(await write(0, whole, delivery));
    const checked = position?.cursor && { ...position, cursor: { ...position.cursor, commits: false } };
    const eventWords: string[] = [];
    let quarantineIds = NO_WORDS;
    for (const [i, piece] of pieces.entries()) {
      const isLast = i === pieces.length - 1;
      const isDone = isLast && !hasConflict(eventWords);
      const group: PublishGroup = {
        policy,
        ...piece,
        ...(position && { position: isDone ? position : (checked ?? position) }),
        ...(quarantine && i === 0 && { quarantine }),
        ...(release && isDone && { release }),
        ...(signed && { signed }),
      };
      const words = splitWords(await write(0, group, delivery));
      for (const word of words.slice(0, piece.events.length)) eventWords.push(word);
      if (i === 0) quarantineIds = words.slice(piece.events.length);
    }
    return [...eventWords, ...quarantineIds];
  };
}

/**
 * Returns a function that writes a delivery to a Cluster, all slots in parallel, after checking for a replay. It deletes the processed
 * quarantine records and moves the stored cursor last.
 */
export function createWriteBySlot(submit: SubmitGroup) {
  const write = toAsync(submit);
  return async function writeBySlot(
    whole: PublishGroup,
    delivery: PendingDelivery,
  ): Promise<readonly string[]> {
    const { policy, events, position, quarantine, release, signed } = whole;
    const isReplay =
      signed !== undefined &&
      (await write(computeSlot(signed.memoryKey), { policy, events: [], signed, bytes: 0 }, delivery)) ===
        REPLAYED;
    const eventWords = new Array<string>(events.length).fill("");
    const epochOnly = position && { at: position.at };
    const bySlot = Map.groupBy(events.entries(), ([, { topic }]) => computeSlot(topic));
    const writePart = async ([slot, part]: readonly [number, (readonly [number, OutgoingEvent])[]]) => {
      const places = part.values();
      for (const piece of splitEvents(part.map(([, event]) => event))) {
        const group = { policy, ...piece, isReplay, ...(epochOnly && { position: epochOnly }) };
        for (const word of splitWords(await write(slot, group, delivery))) {
          eventWords[places.next().value?.[0] ?? 0] = word;
        }
      }
    };
    const emptyGroup = { policy, events: [], bytes: 0 };
    const [quarantineIds] = await Promise.all([
      quarantine
        ? write(
            computeSlot(quarantine.budgetKey),
            { ...emptyGroup, quarantine, bytes: quarantine.bytes },
            delivery,
          ).then(splitWords)
        : NO_WORDS,
      ...[...bySlot].map(writePart),
    ]);
    if (hasConflict(eventWords)) return [...eventWords, ...quarantineIds];
    await Promise.all([
      release && write(computeSlot(release.budgetKey), { ...emptyGroup, release }, delivery),
      position?.cursor &&
        write(
          computeSlot(position.cursor.key),
          { ...emptyGroup, position, bytes: position.at.value?.length ?? 0 },
          delivery,
        ),
    ]);
    return [...eventWords, ...quarantineIds];
  };
}

const toAsync =
  (submit: SubmitGroup) =>
  (slot: number, group: PublishGroup, delivery: PendingDelivery): Promise<string> =>
    new Promise((resolve, reject) => submit(slot, group, delivery, resolve, reject));

/**
 * Returns true if an event was not published. Its delivery must then go to quarantine before the cursor moves or old quarantine
 * records are deleted.
 */
const hasConflict = (eventWords: readonly string[]): boolean =>
  eventWords.includes(CONFLICT) || eventWords.includes(REPLAYED);

interface Piece {
  readonly events: readonly OutgoingEvent[];
  readonly bytes: number;
}

/** Splits events into ordered pieces that each fit into one script call. An event above the byte limit gets a piece of its own. */
function splitEvents(events: readonly OutgoingEvent[]): readonly Piece[] {
  const pieces: Piece[] = [];
  let piece: OutgoingEvent[] = [];
  let bytes = 0;
  for (const event of events) {
    if (piece.length === MAX_CALL_EVENTS || (piece.length > 0 && bytes + event.bytes > MAX_CALL_BYTES)) {
      pieces.push({ events: piece, bytes });
      piece = [];
      bytes = 0;
    }
    piece.push(event);
    bytes += event.bytes;
  }
  if (piece.length > 0) pieces.push({ events: piece, bytes });
  return pieces;
}
