import { isSame } from "./same.ts";
import { isRecord, parseField, type Resolve, type Schema } from "./schema.ts";

/** Returns whether the value is missing or equal to the schema's default. */
export function isDefault(schema: Schema, value: unknown, resolve: Resolve): boolean {
  const field = parseField(schema, resolve);
  if (value === undefined || value === null || isSame(value, field.fallback)) return true;
  if (field.is === "variants" && isRecord(field.fallback) && isRecord(value))
    return isSame(value[field.by], field.fallback[field.by]);
  return (
    field.is === "object" &&
    isRecord(value) &&
    field.properties.every(({ name, schema: one }) => isDefault(one, value[name], resolve))
  );
}

/** Returns the initial value for a new entry of a form: empty objects and lists, and the discriminator of a union. */
export function createInitialValue(schema: Schema, resolve: Resolve): unknown {
  const field = parseField(schema, resolve);
  switch (field.is) {
    case "object":
      return getFixedFields(schema, resolve);
    case "variants":
      return field.variants[0] ? getFixedFields(field.variants[0].schema, resolve) : {};
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
export function getFixedFields(schema: Schema, resolve: Resolve): Readonly<Record<string, unknown>> {
  const field = parseField(schema, resolve);
  if (field.is !== "object") return {};
  return Object.fromEntries(
    field.properties.flatMap(({ name, schema: one }) => {
      const part = parseField(one, resolve);
      return part.is === "fixed" ? [[name, part.value]] : [];
    }),
  );
}

/** Keeps the values of those fields that the new object type also has. */
export function pickKnownFields(
  given: Readonly<Record<string, unknown>>,
  { properties }: Schema,
): Readonly<Record<string, unknown>> {
  const known = isRecord(properties) ? properties : {};
  return Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(known, name)));
}
