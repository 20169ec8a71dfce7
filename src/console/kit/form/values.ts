import { isSame } from "./same.ts";
import { fieldOf, isRecord, type Resolve, type Schema } from "./schema.ts";

/** Returns whether the value is missing or equals the API's default. */
export function isUsual(schema: Schema, value: unknown, resolve: Resolve): boolean {
  const field = fieldOf(schema, resolve);
  if (value === undefined || value === null || isSame(value, field.fallback)) return true;
  if (field.is === "variants" && isRecord(field.fallback) && isRecord(value))
    return isSame(value[field.by], field.fallback[field.by]);
  return (
    field.is === "object" &&
    isRecord(value) &&
    field.properties.every(({ name, schema: one }) => isUsual(one, value[name], resolve))
  );
}

/** Returns the initial value of a new entry: its discriminator and empty containers. */
export function startOf(schema: Schema, resolve: Resolve): unknown {
  const field = fieldOf(schema, resolve);
  switch (field.is) {
    case "object":
      return startOfObject(schema, resolve);
    case "variants":
      return field.variants[0] ? startOfObject(field.variants[0].schema, resolve) : {};
    case "list":
      return [];
    case "record":
      return {};
    case "flag":
      return false;
    case "fixed":
      return field.value;
    default:
      return undefined;
  }
}

/** Returns only the constant fields of the object. */
export function startOfObject(schema: Schema, resolve: Resolve): Readonly<Record<string, unknown>> {
  const field = fieldOf(schema, resolve);
  if (field.is !== "object") return {};
  return Object.fromEntries(
    field.properties.flatMap(({ name, schema: one }) => {
      const part = fieldOf(one, resolve);
      return part.is === "fixed" ? [[name, part.value]] : [];
    }),
  );
}

/** Returns the values that the new variant also has a field for. */
export function keptBy(
  given: Readonly<Record<string, unknown>>,
  { properties }: Schema,
): Readonly<Record<string, unknown>> {
  const known = isRecord(properties) ? properties : {};
  return Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(known, name)));
}
