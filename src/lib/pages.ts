/** Yields the pages of a query by keyset pagination: each page starts after the key of the last row of the previous page. */
export async function* inPages<N extends string, K, T extends Readonly<Record<N, K>>>(
  key: N,
  first: K,
  limit: number,
  read: (after: K, limit: number) => Promise<readonly T[]>,
): AsyncGenerator<readonly T[]> {
  for (let after = first; ; ) {
    const page = await read(after, limit);
    yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < limit) return;
    after = last[key];
  }
}
