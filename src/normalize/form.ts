/**
 * The fields of an `application/x-www-form-urlencoded` text (WHATWG URL section 5.1) as a flat object of strings; a name
 * that stands more than once has an array of its values. Brackets in names mean nothing.
 */
export function parseForm(text: string): Readonly<Record<string, string | readonly string[]>> {
  const fields = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const before = fields.get(name);
    if (before === undefined) fields.set(name, value);
    else if (typeof before === "string") fields.set(name, [before, value]);
    else before.push(value);
  }
  // Makes own members of all names, `__proto__` too.
  return Object.fromEntries(fields);
}
