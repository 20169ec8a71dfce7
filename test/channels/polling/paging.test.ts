import { describe, expect, it } from "vitest";
import { type Answer, json } from "./answer-server.ts";
import { idsOf, NOW, openedPolls, rows } from "./poll-support.ts";

const { rigOf, server } = openedPolls();

describe("a poll of a paginated API", () => {
  const config = {
    discriminator: { by: "seenSet" },
    pagination: { by: "nextUrlPath", path: "$.next" },
  } as const;

  it("fails when a page links to an earlier page", async () => {
    server.answers = [
      json({ ...rows(1), next: "/rows?page=2" }),
      json({ ...rows(2), next: "/rows?page=3" }),
      json({ ...rows(2), next: "/rows?page=2" }),
    ];
    const rig = rigOf(config);
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "page_repeated" });
    expect(idsOf(rig)).toEqual(["1", "2"]);
  });

  it("fails without a request if the next page is on another origin", async () => {
    for (const next of ["http://127.0.0.1:9/rows", "//localhost/rows", "https://example.com/"]) {
      server.answers = [json({ ...rows(1), next })];
      const { origin } = new URL(next, "http://x");
      expect(await rigOf(config).poll()).toMatchObject({
        kind: "failed",
        code: "origin",
        isRejection: true,
        message: expect.stringContaining(`is at ${origin}, but the channel calls ${server.origin}.`),
      });
    }
  });

  it("stops after the maximum number of pages, and the next poll continues if new items arrived", async () => {
    const pagination = { ...config.pagination, maxPages: 2 };
    const discriminator = { by: "sequence", path: "$.id" } as const;
    const request = { url: `${server.origin}/rows`, query: { since: "{{cursor}}" } };
    const page: Answer = (incoming, response) => {
      const url = new URL(incoming.url ?? "", server.origin);
      const from = Number(url.searchParams.get("from") ?? url.searchParams.get("since") ?? 0) + 1;
      json({ ...rows(from), ...(from < 5 && { next: `/rows?from=${from}` }) })(incoming, response);
    };
    server.answers = [page];
    const rig = rigOf({ discriminator, request, pagination });
    expect(await rig.poll()).toEqual({ kind: "done", notBeforeMs: NOW });
    expect(await rig.pollAll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2", "3", "4", "5"]);
    // A seen set must read all pages in each poll. The poll fails instead of silently skipping the last page.
    server.answers = [json({ ...rows(1), next: "/rows?page=2" }), json({ ...rows(2), next: "/rows?page=3" })];
    const set = rigOf({ ...config, pagination });
    expect(await set.poll()).toEqual({ kind: "done", notBeforeMs: NOW });
    server.answers = [json({ ...rows(1), next: "/rows?page=2" }), json({ ...rows(2), next: "/rows?page=3" })];
    expect(await set.poll()).toMatchObject({ kind: "failed", code: "page_limit" });
  });

  it("reads newest-first pages until a known item, and publishes the new items oldest first", async () => {
    const newest = {
      order: "descending",
      discriminator: { by: "sequence", path: "$.id" },
      pagination: config.pagination,
    } as const;
    const rig = rigOf(newest);
    server.answers = [
      json({ ...rows(6, 5), next: "/rows?page=2" }),
      json({ ...rows(4, 3), next: "/rows?page=3" }),
      json(rows(2, 1)),
    ];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2", "3", "4", "5", "6"]);
    server.answers = [
      json({ ...rows(8, 7), next: "/rows?page=2" }),
      json({ ...rows(6, 5), next: "/rows?page=3" }),
    ];
    server.requests.length = 0;
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(server.requests).toHaveLength(2);
    expect(idsOf(rig).slice(6)).toEqual(["7", "8"]);
    expect(String(rig.deliveries.at(-1)?.body)).toBe(JSON.stringify({ ...rows(8, 7), next: "/rows?page=2" }));
  });

  describe("that reads newest-first pages and reaches a limit before a known item", () => {
    /** Pages of two items, newest first. Each page is addressed by the id of the item before it, as servers do whose lists change. */
    function givenList(newest: number) {
      let ids = Array.from({ length: newest }, (_, index) => newest - index);
      const page: Answer = (incoming, response) => {
        const { searchParams } = new URL(incoming.url ?? "", server.origin);
        const after = Number(searchParams.get("after") ?? Number.POSITIVE_INFINITY);
        const shown = ids.filter((id) => id < after).slice(0, 2);
        const last = shown.at(-1);
        const next = last !== undefined && ids.some((id) => id < last) ? `/rows?after=${last}` : null;
        if (Number.isFinite(after) && !ids.includes(after)) response.writeHead(410).end();
        else json({ ...rows(...shown), next })(incoming, response);
      };
      server.answers = [page];
      const rig = rigOf({
        order: "descending",
        discriminator: { by: "sequence", path: "$.id" },
        pagination: { ...config.pagination, maxPages: 2 },
      });
      return {
        rig,
        insert: (...inserted: number[]) => {
          ids = [...ids, ...inserted].toSorted((a, b) => b - a);
        },
        remove: (id: number) => {
          ids = ids.filter((one) => one !== id);
        },
        /** Polls until all items are published, and returns the number of polls. */
        async drain(): Promise<number> {
          for (let polls = 1; polls <= 40; polls++) {
            expect(await rig.poll()).toMatchObject({ kind: "done" });
            if (idsOf(rig).length >= ids.length) return polls;
          }
          throw new Error(`published only ${idsOf(rig)}`);
        },
      };
    }
    const upTo = (newest: number) => Array.from({ length: newest }, (_, index) => String(index + 1));

    it.each([
      5, 8, 9, 12, 20,
    ])("continues at the next page, and publishes all %i items in order", async (newest) => {
      const list = givenList(newest);
      await list.drain();
      expect(idsOf(list.rig)).toEqual(upTo(newest));
      list.insert(newest + 1, newest + 2, newest + 3, newest + 4);
      await list.drain();
      expect(idsOf(list.rig)).toEqual(upTo(newest + 4));
      expect(await list.rig.poll()).toEqual({ kind: "done" });
    });

    it("waits for its schedule before it continues, and says so", async () => {
      const { rig } = givenList(9);
      expect(await rig.poll()).toEqual({ kind: "done" });
      expect(idsOf(rig)).toEqual([]);
      expect(rig.warnings).toEqual(["page_limit"]);
    });

    it("loses no item that is added or deleted meanwhile", async () => {
      const list = givenList(11);
      await list.rig.poll();
      // The page at which the next poll would continue is gone with this item.
      list.remove(8);
      list.insert(12, 13);
      await list.drain();
      expect(idsOf(list.rig)).toEqual(upTo(13).filter((id) => id !== "8"));
    });
  });

  it('with `startAt: "now"` fails the second time that the last page is beyond the maximum number of pages', async () => {
    const rig = rigOf({ ...config, startAt: "now", pagination: { ...config.pagination, maxPages: 1 } });
    server.answers = [json({ ...rows(1), next: "/rows?page=2" })];
    expect(await rig.poll()).toEqual({ kind: "done", notBeforeMs: NOW });
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "page_limit" });
    expect(rig.log).toEqual([]);
  });

  it("ends when the rate limit of the server is reached, and the next poll starts when that limit resets", async () => {
    const discriminator = { by: "sequence", path: "$.id" } as const;
    const spent = { "ratelimit-remaining": "0", "ratelimit-reset": "7" };
    server.answers = [json({ ...rows(1), next: "/rows?page=2" }, spent)];
    const rig = rigOf({ ...config, discriminator });
    expect(await rig.poll()).toEqual({ kind: "done", notBeforeMs: NOW + 7000 });
    expect(server.requests).toHaveLength(1);
  });
});
