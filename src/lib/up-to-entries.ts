/**
 * Returns options that limit an `LRUCache` to a number of entries. The cache's own option `max` would allocate memory for all entries in
 * advance. For 50,000 entries, that is more than a megabyte and takes at least 3 ms.
 */
export const upToEntries = (most: number) => ({ maxSize: most, sizeCalculation: () => 1 });
