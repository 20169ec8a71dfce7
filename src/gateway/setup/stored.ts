/** The value as it is once it was kept as JSON: fields that are undefined are none. */
export const asStored = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
