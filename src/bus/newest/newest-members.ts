import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";

/** Position in a list that is sorted by score, then by id, both descending. */
export interface ListPosition {
  readonly score: number;
  readonly id: string;
}

export interface NewestQuery {
  readonly limit: number;
  /** Lowest score, inclusive. */
  readonly from?: number | undefined;
  /** Score limit, exclusive. */
  readonly to?: number | undefined;
  /** Last member of the previous page. `undefined` for the first page. */
  readonly after?: ListPosition | undefined;
  /** Required values of a member's fields, by the number of the field. The id is field 1. */
  readonly fields?: readonly (readonly [field: number, value: string])[];
}

export interface NewestMember {
  readonly key: string;
  readonly member: string;
  readonly score: number;
}

/** Maximum number of sorted sets per script call, so that a call blocks Redis for a few milliseconds at most. */
const KEYS_AT_ONCE = 200;

/**
 * Reads the newest members of many sorted sets that are in the same Cluster slot. `total` counts the matching members of all pages.
 *
 * Reads one part of the sets after the other. Each part only returns members that are newer than those already found.
 */
export function createNewestReader({ redis }: { readonly redis: RedisBus }) {
  const runLua = luaScript(redis, new URL("./newest-members.lua", import.meta.url));

  async function readPart(keys: readonly string[], query: NewestQuery, floor: number | undefined) {
    const { limit, from, to, after, fields = [] } = query;
    const range = [from ?? "-inf", to ?? "+inf", limit, after?.score ?? "", after?.id ?? ""];
    const reply = await runLua(keys, [...range, floor ?? "-inf", ...fields.flat()]);
    const [total, ...found] = reply as [number, ...(string | number)[]];
    const members = Array.from({ length: found.length / 3 }, (_, n): NewestMember => {
      const [index, member, score] = found.slice(3 * n, 3 * n + 3);
      return { key: keys[Number(index) - 1] ?? "", member: String(member), score: Number(score) };
    });
    return { total, members };
  }

  return async function readNewest(
    keys: readonly string[],
    query: NewestQuery,
  ): Promise<{ readonly members: readonly NewestMember[]; readonly total: number }> {
    let newest: readonly NewestMember[] = [];
    let total = 0;
    for (let at = 0; at < keys.length; at += KEYS_AT_ONCE) {
      const floor = newest.length < query.limit ? undefined : newest.at(-1)?.score;
      const part = await readPart(keys.slice(at, at + KEYS_AT_ONCE), query, floor);
      newest = [...newest, ...part.members].sort(comesFirst).slice(0, query.limit);
      total += part.total;
    }
    return { members: newest, total };
  };
}

const comesFirst = (a: NewestMember, b: NewestMember): number =>
  b.score - a.score || (a.member < b.member ? 1 : -1);
