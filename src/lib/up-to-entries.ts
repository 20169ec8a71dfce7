/**
 * Returns options that limit an `LRUCache` to a number of entries. The cache's own option `max` would allocate memory for all
 * entries in advance: 1 MB for 50,000 entries.
 */
export const upToEntries = (most: number) => ({ maxSize: most, sizeCalculation: () => 1 });
