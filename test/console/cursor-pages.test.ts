import { describe, expect, it } from "vitest";
import {
  type CursorPages,
  type CursorRequest,
  createCursorPages,
  MAX_PAGES,
  MAX_ROWS,
  PAGE_ROWS,
} from "../../src/console/kit/list/cursor-pages.ts";
import { until } from "../support/until.ts";

interface OpenedList {
  readonly pages: CursorPages<number>;
  readonly requests: CursorRequest[];
  /** Rows of the list. A test can change them. */
  readonly rows: number[];
  readonly show: (first: number, last: number) => Promise<void>;
}

/** Opens a list of numbers that is paged like the API's list of events. */
function openList(count: number, { canSkip = true, maxRows = PAGE_ROWS } = {}): OpenedList {
  const rows = Array.from({ length: count }, (_, n) => n);
  const requests: CursorRequest[] = [];
  const errors: unknown[] = [];
  const pages = createCursorPages<number>({
    canSkip,
    onChange() {},
    onError: (error) => errors.push(error),
    async load(request) {
      requests.push(request);
      const { limit, cursor, offset = 0 } = request;
      const after = cursor === undefined ? 0 : rows.findIndex((row) => row > Number(cursor));
      const start = Math.min((after === -1 ? rows.length : after) + offset, rows.length);
      const found = rows.slice(start, start + Math.min(limit, maxRows));
      const isLast = start + found.length >= rows.length;
      return {
        rows: found,
        total: rows.length,
        scanned: start - after + found.length,
        next: isLast ? undefined : String(found.at(-1)),
      };
    },
  });
  return {
    pages,
    requests,
    rows,
    async show(first, last) {
      pages.want(first, last);
      await until(async () => {
        const end = Math.min(last, pages.count() ?? last);
        return (
          errors.length > 0 || (end <= first ? pages.count() !== undefined : isLoaded(pages, first, end))
        );
      });
      expect(errors).toEqual([]);
    },
  };
}

const isLoaded = (pages: CursorPages<number>, first: number, end: number): boolean =>
  pages.rowAt(first) !== undefined && pages.rowAt(end - 1) !== undefined;

const loadedRows = ({ pages, rows }: OpenedList): number =>
  rows.filter((_, index) => pages.rowAt(index) !== undefined).length;

describe("the pages of a list with a cursor", () => {
  it("have the full length at once, and reach any row with few requests if the API can skip rows", async () => {
    const list = openList(100_000);
    await list.show(0, 40);
    expect(list.pages.count()).toBe(100_000);
    await list.show(99_960, 100_000);
    expect(list.pages.rowAt(99_999)).toBe(99_999);
    expect(list.requests.length).toBeLessThan(15);
    await list.show(50_010, 50_050);
    expect(list.pages.rowAt(50_010)).toBe(50_010);
    expect(list.requests.length).toBeLessThan(18);
  });

  it("end at the maximum length that a browser can show", async () => {
    const list = openList(MAX_ROWS + 50);
    await list.show(0, 40);
    expect([list.pages.count(), list.pages.isCut()]).toEqual([MAX_ROWS, true]);
    await list.show(MAX_ROWS - 40, MAX_ROWS);
    expect(list.pages.rowAt(MAX_ROWS - 1)).toBe(MAX_ROWS - 1);
    expect([list.pages.count(), list.pages.isCut()]).toEqual([MAX_ROWS, true]);
  });

  it("grow by a row for the next page if the total does not count the rows of the list", async () => {
    const list = openList(250, { canSkip: false });
    await list.show(0, 40);
    expect([list.pages.count(), list.pages.hasMore()]).toEqual([PAGE_ROWS + 1, true]);
    await list.show(60, PAGE_ROWS + 1);
    expect(list.pages.count()).toBe(2 * PAGE_ROWS + 1);
    await list.show(160, 2 * PAGE_ROWS + 1);
    expect([list.pages.count(), list.pages.hasMore()]).toEqual([250, false]);
    expect(list.pages.rowAt(249)).toBe(249);
  });

  it("drop the rows far from the visible ones, and load them again by their cursor", async () => {
    const list = openList(20_000);
    for (let first = 0; first < 20_000; first += PAGE_ROWS) await list.show(first, first + PAGE_ROWS);
    expect(loadedRows(list)).toBe(MAX_PAGES * PAGE_ROWS);
    const before = list.requests.length;
    await list.show(5_000, 5_040);
    expect(list.pages.rowAt(5_000)).toBe(5_000);
    expect(list.requests.slice(before)).toEqual([{ limit: PAGE_ROWS, cursor: "4999" }]);
    expect(loadedRows(list)).toBe(MAX_PAGES * PAGE_ROWS);
  });

  it("are filled by several requests if the API returns fewer rows than requested", async () => {
    const list = openList(230, { maxRows: 30 });
    await list.show(200, 230);
    expect(Array.from({ length: 30 }, (_, n) => list.pages.rowAt(200 + n))).toEqual(list.rows.slice(200));
    await list.show(0, PAGE_ROWS);
    expect(Array.from({ length: PAGE_ROWS }, (_, n) => list.pages.rowAt(n))).toEqual(
      list.rows.slice(0, PAGE_ROWS),
    );
  });

  it("end earlier if rows were deleted since the first page was loaded", async () => {
    const list = openList(40_000);
    await list.show(0, 40);
    list.rows.length = 30_050;
    await list.show(39_960, 40_000);
    expect(list.pages.count()).toBe(30_050);
    await list.show(30_010, 30_050);
    expect(list.pages.rowAt(30_049)).toBe(30_049);
  });
});
