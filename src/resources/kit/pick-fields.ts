import type { z } from "zod";

/** Returns the fields of `value` that the shape of a response declares. */
export const pickFields = <S extends z.ZodRawShape, V extends object>(
  shape: S,
  value: V,
): Pick<V, keyof S & keyof V> =>
  Object.fromEntries(Object.entries(value).filter(([name]) => name in shape)) as Pick<V, keyof S & keyof V>;
