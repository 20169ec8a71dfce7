/**
 * Characters that `\s` matches in ECMAScript: WhiteSpace and LineTerminator (ECMA-262, sections 12.2 and 12.3). In RE2, `\s`
 * matches only ASCII whitespace without `\v`.
 */
const SPACE =
  "\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";
const NOT_SPACE =
  "\\x{0}-\\x{8}\\x{e}-\\x{1f}!-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}" +
  "\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}";
const ANY = "[\\x{0}-\\x{10ffff}]";
const NOTHING = "[^\\x{0}-\\x{10ffff}]";
const NOT_LINE_END = "[^\\n\\r\\x{2028}\\x{2029}]";
const BACKSPACE = 8;
/**
 * Maps long names of Unicode general categories to short names (Unicode Character Database), because RE2 knows only the short
 * names.
 */
const CATEGORIES: ReadonlyMap<string, string> = new Map([
  ["Letter", "L"],
  ["Lowercase_Letter", "Ll"],
  ["Uppercase_Letter", "Lu"],
  ["Mark", "M"],
  ["Number", "N"],
  ["Decimal_Number", "Nd"],
  ["Punctuation", "P"],
  ["Symbol", "S"],
  ["Separator", "Z"],
  ["Other", "C"],
]);
const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, v: 11, f: 12, "0": 0 };
/** Characters that may be escaped under the flag `u` (ECMA-262). Escapes of other punctuation are accepted too, and rewritten. */
const SYNTAX = /[\^$\\.*+?()[\]{}|/]/;

/**
 * Translates an ECMAScript pattern (ECMA-262, section 22.2.1, flag `u`) to RE2 syntax. Groups lose their names and numbers, because
 * the result only tests for a match.
 *
 * @throws SyntaxError if the pattern is malformed or cannot be matched in linear time
 */
export function translateEcmaPattern(source: string, options: { readonly dotAll: boolean }): string {
  const pattern = unescapePunctuation(source);
  // Let V8 validate the pattern, because authors know its error messages. This is cheap, because V8 compiles a pattern only at the
  // first match.
  new RegExp(pattern, "u");
  return new Translation(pattern, options.dotAll).run();
}

/** Removes unnecessary escapes such as `\-`. They are common in patterns, but the flag `u` makes them syntax errors. */
function unescapePunctuation(source: string): string {
  let inClass = false;
  return source.replace(/\\[\s\S]|[[\]]/g, (text) => {
    if (text === "[") inClass = true;
    if (text === "]") inClass = false;
    if (text.length === 1) return text;
    const escaped = text.charAt(1);
    const needless =
      /[!-/:-@[-`{-~ ]/.test(escaped) && !SYNTAX.test(escaped) && !(inClass && escaped === "-");
    return needless ? escaped : text;
  });
}

/** Translates a valid pattern in one pass, and changes only what RE2 writes differently. */
class Translation {
  readonly #pattern: string;
  readonly #dotAll: boolean;
  #at = 0;

  constructor(pattern: string, dotAll: boolean) {
    this.#pattern = pattern;
    this.#dotAll = dotAll;
  }

  run(): string {
    const text = this.#alternatives();
    return text === "" ? "(?:)" : text;
  }

  /** Translates alternatives up to the closing parenthesis of the current group, or to the end of the pattern. */
  #alternatives(): string {
    let out = "";
    while (this.#at < this.#pattern.length && this.#peek() !== ")") {
      if (this.#peek() === "|") {
        this.#at++;
        out += "|";
      } else {
        out += this.#quantified(this.#atom());
      }
    }
    return out;
  }

  #atom(): string {
    const char = this.#next();
    if (char === "(") return this.#group();
    if (char === "[") return this.#characterClass();
    if (char === "\\") return this.#escape();
    if (char === ".") return this.#dotAll ? ANY : NOT_LINE_END;
    // Without the flag `m`, ECMAScript's `^` and `$` match only at the start and end of the text. RE2 calls these `\A` and `\z`.
    if (char === "^") return "\\A";
    if (char === "$") return "\\z";
    return literal(char);
  }

  #group(): string {
    let opening = "(?:";
    if (this.#peek() === "?") {
      const rest = this.#pattern.slice(this.#at);
      if (/^\?<?[=!]/.test(rest)) {
        throw new SyntaxError("look-around ((?=…), (?!…), (?<=…), (?<!…)) cannot be matched in linear time");
      }
      const [head = ""] = /^\?(?:<[^>]*>|[a-z-]*:)/.exec(rest) ?? [];
      if (/[ms-]/.test(head) && !head.startsWith("?<")) {
        throw new SyntaxError(`the modifiers (${head} are not supported`);
      }
      if (head === "?i:") opening = "(?i:";
      this.#at += head.length;
    }
    const body = this.#alternatives();
    this.#at++;
    return `${opening}${body})`;
  }

  #quantified(atom: string): string {
    const [text, min, comma, max] =
      /^(?:[*+?]|\{(\d+)(,(\d*))?\})\??/.exec(this.#pattern.slice(this.#at, this.#at + 60)) ?? [];
    if (text === undefined) return atom;
    this.#at += text.length;
    // Drop the lazy modifier. It changes which part of a text matches, but not whether the text matches.
    if (min === undefined) return atom + text.charAt(0);
    const least = Number(min);
    const most = comma === undefined ? least : max === "" ? Number.POSITIVE_INFINITY : Number(max);
    return repeat(atom, least, most);
  }

  #escape(): string {
    const char = this.#peek();
    if (/[1-9]/.test(char) || char === "k") {
      throw new SyntaxError(`the back-reference \\${char} cannot be matched in linear time`);
    }
    if (/[bB]/.test(char)) {
      this.#at++;
      return `\\${char}`;
    }
    const set = this.#escapedSet();
    return set === undefined ? literal(String.fromCodePoint(this.#escapedCodePoint())) : `[${set}]`;
  }

  /**
   * Translates an escape for a set of characters (`\d`, `\s`, `\p{…}`) to the content of a character class. Returns `undefined`
   * for other escapes.
   */
  #escapedSet(): string | undefined {
    const char = this.#peek();
    if (!/[dDwWsSpP]/.test(char)) return undefined;
    this.#at++;
    if (char === "s") return SPACE;
    if (char === "S") return NOT_SPACE;
    if (char === "p" || char === "P") return `\\${char}{${this.#propertyName()}}`;
    return `\\${char}`;
  }

  /** Translates the name of a Unicode property. RE2 omits the prefix `Script=`, and uses short names of general categories. */
  #propertyName(): string {
    const end = this.#pattern.indexOf("}", this.#at);
    const name = this.#pattern.slice(this.#at + 1, end);
    this.#at = end + 1;
    const bare = name.replace(/^(?:Script|sc|General_Category|gc)=/, "");
    return CATEGORIES.get(bare) ?? bare;
  }

  #escapedCodePoint(): number {
    const char = this.#next();
    const control = CONTROLS[char];
    if (control !== undefined) return control;
    if (char === "c") return (this.#next().codePointAt(0) ?? 0) % 32;
    if (char === "x") return this.#hex(2);
    if (char !== "u") return char.codePointAt(0) ?? 0;
    if (this.#peek() === "{") {
      const end = this.#pattern.indexOf("}", this.#at);
      const value = Number.parseInt(this.#pattern.slice(this.#at + 1, end), 16);
      this.#at = end + 1;
      return value;
    }
    const unit = this.#hex(4);
    const [low] = /^\\u[dD][c-fC-F][0-9a-fA-F]{2}/.exec(this.#pattern.slice(this.#at, this.#at + 6)) ?? [];
    if (unit < 0xd800 || unit > 0xdbff || low === undefined) return unit;
    this.#at += 2;
    return 0x10000 + ((unit - 0xd800) << 10) + (this.#hex(4) - 0xdc00);
  }

  #hex(digits: number): number {
    const value = Number.parseInt(this.#pattern.slice(this.#at, this.#at + digits), 16);
    this.#at += digits;
    return value;
  }

  #characterClass(): string {
    let body = "";
    const negated = this.#peek() === "^";
    if (negated) this.#at++;
    for (let char = this.#next(); char !== "]"; char = this.#next()) {
      const isRange = char === "-" && body !== "" && this.#peek() !== "]";
      if (isRange) body += "-";
      else if (char !== "\\") body += member(char.codePointAt(0) ?? 0);
      else if (this.#peek() === "b") {
        this.#at++;
        body += member(BACKSPACE);
      } else body += this.#escapedSet() ?? member(this.#escapedCodePoint());
    }
    if (body === "") return negated ? ANY : NOTHING;
    return `[${negated ? "^" : ""}${body}]`;
  }

  #peek(): string {
    return this.#pattern.charAt(this.#at);
  }

  #next(): string {
    const char = String.fromCodePoint(this.#pattern.codePointAt(this.#at) ?? 0);
    this.#at += char.length;
    return char;
  }
}

const literal = (char: string): string => (/^[\w ]$/.test(char) ? char : member(char.codePointAt(0) ?? 0));

const member = (codePoint: number): string => `\\x{${codePoint.toString(16)}}`;

/** Maximum count that RE2 accepts in `{n,m}`. */
const MAX_COUNT = 1000;

/**
 * Formats a repetition of `least` to `most` times in RE2 syntax. If a count exceeds RE2's maximum, several repetitions follow each
 * other.
 */
function repeat(atom: string, least: number, most: number): string {
  if (most <= MAX_COUNT) return `${atom}{${least},${most}}`;
  if (most === Number.POSITIVE_INFINITY) {
    return least <= MAX_COUNT ? `${atom}{${least},}` : `(?:${exactly(atom, least)}${atom}*)`;
  }
  return `(?:${exactly(atom, least)}${upTo(atom, most - least)})`;
}

const exactly = (atom: string, count: number): string => row(atom, count, (part) => `{${part}}`);

const upTo = (atom: string, count: number): string => row(atom, count, (part) => `{0,${part}}`);

function row(atom: string, count: number, quantifier: (part: number) => string): string {
  const parts = [...Array<number>(Math.floor(count / MAX_COUNT)).fill(MAX_COUNT), count % MAX_COUNT];
  return parts.map((part) => (part === 0 ? "" : atom + quantifier(part))).join("");
}
