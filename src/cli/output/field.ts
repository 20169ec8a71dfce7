/**
 * Returns the value at a path such as `handler.secret` or `channels.0.url`. Returns `undefined` if there is none.
 *
 * @param path names of members and numbers of array items, separated by dots
 */
export const getField = (value: unknown, path: string): unknown =>
  path
    .split(".")
    .reduce<unknown>(
      (found, name) =>
        typeof found === "object" && found !== null && Object.hasOwn(found, name)
          ? Reflect.get(found, name)
          : undefined,
      value,
    );
