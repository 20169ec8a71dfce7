/** A compiled pattern whose test takes time linear in the length of the text. */
export interface LinearRegExp {
  test(text: string): boolean;
  /** The pattern and its flags, distinct for distinct patterns: Ajv keys its patterns by this. */
  toString(): string;
}
