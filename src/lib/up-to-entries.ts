/**
 * Returns options that limit an `LRUCache` to a number of entries. The option `max` would allocate memory for all entries up front,
 * which for 50,000 takes 3 ms and more than a megabyte.
 */
export const upToEntries = (most: number) => ({ maxSize: most, sizeCalculation: () => 1 });
