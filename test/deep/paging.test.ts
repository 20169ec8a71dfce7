import { describe, expect, it } from "vitest";
import { type Answer, json } from "../channels/polling/answer-server.ts";
import { idsOf, NOW, openedPolls } from "../channels/polling/poll-support.ts";

const { rigOf, server } = openedPolls();

describe("polling pages that do not fit into memory together", () => {
  const pagination = { by: "nextUrlPath", path: "$.next" } as const;

  it("publishes pages that are sorted newest first over several polls, oldest item first", async () => {
    const big = (id: number) => ({ id, text: "x".repeat(3 * 1024 * 1024) });
    const page: Answer = (request, response) => {
      const id = Number(new URL(request.url ?? "", server.origin).searchParams.get("p") ?? 6);
      json({ rows: [big(id)], ...(id > 1 && { next: `/rows?p=${id - 1}` }) })(request, response);
    };
    server.answers = [page];
    const rig = rigOf({
      order: "descending",
      discriminator: { by: "sequence", path: "$.id" },
      pagination,
    });
    expect(await rig.poll()).toEqual({ kind: "done", notBeforeMs: NOW });
    expect(idsOf(rig)).toEqual(["1", "2"]);
    expect(await rig.pollAll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2", "3", "4", "5", "6"]);
  });

  it("discards pages of known items, so that a new item is published even with a large look-back window", async () => {
    const old = Array.from({ length: 5 }, (_, n) => ({ id: 5 - n, text: "x".repeat(3 * 1024 * 1024) }));
    const pageOf =
      (all: readonly { readonly id: number }[]): Answer =>
      (request, response) => {
        const nth = Number(new URL(request.url ?? "", server.origin).searchParams.get("p") ?? 0);
        const next = nth + 1 < all.length ? { next: `/rows?p=${nth + 1}` } : {};
        json({ rows: [all[nth]], ...next })(request, response);
      };
    const discriminator = { by: "sequence", path: "$.id", lookBack: 100 } as const;
    const rig = rigOf({ order: "descending", discriminator, pagination });
    server.answers = [pageOf(old)];
    expect(await rig.pollAll()).toEqual({ kind: "done" });
    server.answers = [pageOf([{ id: 6 }, ...old])];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2", "3", "4", "5", "6"]);
  });
});
