/**
 * Returns options that limit an `LRUCache` to a number of entries. The usual option `max` would allocate memory for all entries
 * up front. For 50,000 entries, this takes at least 3 ms and more than a megabyte.
 */
export const upToEntries = (most: number) => ({ maxSize: most, sizeCalculation: () => 1 });
