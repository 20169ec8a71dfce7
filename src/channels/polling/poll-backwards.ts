import { doneAt, type Failed } from "../pull/source-end.ts";
import type { SourceEnd } from "../source.ts";
import type { FetchedPage } from "./fetch/fetch-page.ts";
import type { Page } from "./fetch/page.ts";
import type { PageRequest } from "./pagination/page-request.ts";
import { continueAt, findLimit, type Poll } from "./poll.ts";

/**
 * Maximum total size of pages in memory, in bytes. Above the limit, the poll drops the pages with the newest items and reads them again
 * later.
 */
const MAX_HELD_BYTES = 8 * 1024 * 1024;

/**
 * Polls an API whose newest items come first.
 *
 * If limits end the walk before it has reached a known item, the next poll continues at the next page. Once a walk has reached a known item,
 * the pages since its interruption are published, and the next walk starts at the first page again.
 */
export async function pollBackwards(poll: Poll): Promise<SourceEnd> {
  const { isDryRun, walk, writer } = poll;
  const { position } = writer;
  const held: FetchedPage[] = [];
  let heldBytes = 0;
  let isCut = false;
  let first: FetchedPage | undefined;
  for (;;) {
    const fetched = await walk.fetch();
    if (fetched.kind === "ended") return fetched.end;
    first ??= fetched;
    const { doubt, next, page } = fetched;
    if (position.select(page).length > 0) {
      held.push(fetched);
      heldBytes += fetched.bytes;
    }
    while (held.length > 1 && heldBytes > MAX_HELD_BYTES) {
      heldBytes -= held.shift()?.bytes ?? 0;
      isCut = true;
    }
    if (next === undefined || (doubt === undefined && (isDryRun || position.reachesKnown(page)))) break;
    const limit = findLimit(poll, fetched);
    if (doubt !== undefined && (isDryRun || limit !== undefined)) throw doubt;
    // With `startAt: "now"`, the first poll may stop at the limit, because later polls stop at the first known item.
    if (limit !== undefined && !position.isPriming()) return interrupt(poll, { limit, next, last: page });
    if (limit !== undefined) break;
    walk.goTo(next);
  }
  const { isFirst, next, page, validators } = first;
  if (!isFirst) {
    // The pages before the interruption were read by an earlier poll, and are read again.
    position.resumeWalk?.(held.length > 0);
    isCut = true;
  }
  const notBeforeMs = held.at(-1)?.notBeforeMs ?? first.notBeforeMs;
  let hasMore = false;
  const finish = (): void => {
    hasMore = position.endPage(page, next);
    if (!hasMore && (!isDryRun || next === undefined)) writer.finish(walk.pages(), validators);
  };
  for (const [index, fetched] of [...held.entries()].reverse()) {
    const published = await writer.publish(fetched, () => {
      if (index === 0 && !isCut) finish();
    });
    if (published.kind === "ended") return published.end;
    if (published.kind === "cut") return continueAt(poll, notBeforeMs);
  }
  if (held.length === 0) {
    if (!isCut) finish();
    await writer.save();
  }
  return isCut || hasMore ? continueAt(poll, notBeforeMs) : doneAt(notBeforeMs);
}

/**
 * Stores at which page the next poll continues. It starts at its scheduled time, so that a server with endless pages is not called without a
 * pause.
 */
async function interrupt(
  { warn, writer }: Poll,
  { last, limit, next }: { readonly limit: Failed; readonly next: PageRequest; readonly last: Page },
): Promise<SourceEnd> {
  if (writer.position.interruptWalk === undefined) return limit;
  writer.position.interruptWalk(next, last);
  await writer.save();
  warn(limit.code, INTERRUPTED);
  return doneAt(limit.notBeforeMs);
}

const INTERRUPTED =
  "The poll has reached a limit before it found a known item. The next polls continue at the following page, and then publish the new items";
