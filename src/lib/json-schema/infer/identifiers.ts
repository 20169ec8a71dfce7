/** Maximum length of a property name. Longer keys are treated as ids. */
const MAX_NAME_LENGTH = 64;

const ID_PATTERNS: readonly RegExp[] = [
  /^\+?\d+$/,
  /^\d{4}-\d{2}-\d{2}/,
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i,
  /^(?=.*\d)[0-9a-f]{12,}$/i,
  /@.*\./,
  /^(?=.*\d)(?=.*[A-Z])[A-Z0-9]{8,}$/,
  // A prefix and a number or token, such as `item_8347` or `price_1MoBy5Lk`.
  /[_:.-]\d{3,}$/,
  /[_:.-](?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{8,}$/,
  /(?:\d[^\d]*){6}/,
];

/**
 * Returns whether a key of an object looks like an id, a date or an address rather than a property name. Such keys are values: they must
 * not appear in a schema.
 */
export const isIdentifier = (key: string): boolean =>
  key === "__proto__" || key.length > MAX_NAME_LENGTH || ID_PATTERNS.some((pattern) => pattern.test(key));
