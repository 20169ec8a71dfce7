/**
 * Returns options that limit an `LRUCache` to a number of entries. The option `max` would allocate memory for all entries in
 * advance: more than a megabyte for 50,000 entries, which takes at least 3 ms.
 */
export const upToEntries = (most: number) => ({ maxSize: most, sizeCalculation: () => 1 });
