import { Marked, type Token, type Tokens } from "marked";

/** A section that search results can link to: a heading with its text, or a table row about one name. */
export interface Place {
  /** URL fragment of the section. Empty for the top of the page. */
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

export interface Rendered {
  readonly title: string;
  readonly html: string;
  readonly places: readonly Place[];
  readonly headings: readonly { readonly id: string; readonly title: string }[];
}

/**
 * Renders GitHub-flavored Markdown as HTML, with the same heading anchors as GitHub. A table row about a setting, an error or a metric gets
 * its name as anchor, so that other pages can link to it.
 *
 * @param addressOf returns the URL of a link or image, or `undefined` to render only its text
 */
export function renderMarkdown(text: string, addressOf: (href: string) => string | undefined): Rendered {
  const ids = new Set<string>();
  const unused = (id: string): boolean => !ids.has(id) && ids.add(id) !== undefined;
  const places: Place[] = [];
  const headings: { id: string; title: string }[] = [];
  let title = "";
  const marked = new Marked({ gfm: true });
  marked.use({
    renderer: {
      heading({ tokens, depth }) {
        const inner = this.parser.parseInline(tokens);
        const plain = plainText(tokens);
        const id = headingId(plain);
        if (depth === 1) {
          title = plain;
          return `<h1>${inner}</h1>\n`;
        }
        const attribute = unused(id) ? ` id="${id}"` : "";
        if (depth === 2) headings.push({ id, title: plain });
        return `<h${depth}${attribute}>${inner} <a class="anchor" href="#${id}" aria-label="Link to this section">#</a></h${depth}>\n`;
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens);
        const address = addressOf(href);
        return address === undefined ? inner : `<a href="${escapeHtml(address)}">${inner}</a>`;
      },
      image({ href, text }) {
        const address = addressOf(href);
        return address === undefined
          ? escapeHtml(text)
          : `<img src="${escapeHtml(address)}" alt="${escapeHtml(text)}">`;
      },
      table({ header, rows }) {
        const cells = (row: readonly Tokens.TableCell[], tag: string): string =>
          row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join("");
        const body = rows.map((row) => {
          const name = rowName(row);
          const attribute = name !== undefined && unused(name) ? ` id="${escapeHtml(name)}"` : "";
          return `<tr${attribute}>${cells(row, "td")}</tr>`;
        });
        const head = `<thead><tr>${cells(header, "th")}</tr></thead>`;
        return `<div class="table"><table>${head}<tbody>${body.join("\n")}</tbody></table></div>\n`;
      },
      html: () => "",
    },
  });
  const tokens = marked.lexer(text);
  const html = marked.parser(tokens);
  places.push(...placesOf(tokens, title));
  return { title, html, places, headings };
}

/** Splits a page into sections. A section starts at each heading and at each table row about one name. */
function placesOf(tokens: readonly Token[], title: string): readonly Place[] {
  const places: { id: string; title: string; text: string }[] = [{ id: "", title, text: "" }];
  for (const token of tokens) {
    if (isHeading(token)) {
      if (token.depth > 1)
        places.push({ id: headingId(plainText(token.tokens)), title: plainText(token.tokens), text: "" });
      continue;
    }
    const section = places.findLast(({ id }) => !id.startsWith("row:"));
    if (section) section.text += `${plainText([token])} `;
    if (!isTable(token)) continue;
    for (const row of token.rows) {
      const name = rowName(row);
      if (name === undefined) continue;
      const text = row.map((cell) => plainText(cell.tokens)).join(" · ");
      places.push({ id: `row:${name}`, title: name, text });
    }
  }
  return places.map((place) => ({ ...place, id: place.id.replace(/^row:/, "") }));
}

/** Returns the name that a table row describes, which is the code in its first or second cell. */
function rowName(row: readonly Tokens.TableCell[]): string | undefined {
  for (const { tokens } of row.slice(0, 2)) {
    const [first] = tokens;
    if (first?.type === "codespan" && /^[\w.-]+$/.test(first.text)) return first.text;
  }
  return undefined;
}

const isHeading = (token: Token): token is Tokens.Heading => token.type === "heading";
const isTable = (token: Token): token is Tokens.Table => token.type === "table";

function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token): string => {
      if (isTable(token)) {
        return [token.header, ...token.rows]
          .flat()
          .map((cell) => plainText(cell.tokens))
          .join(" ");
      }
      if (token.type === "list") return plainText(token.items);
      if (token.type === "html") return "";
      if ("tokens" in token && token.tokens) return plainText(token.tokens);
      return "text" in token ? String(token.text) : " ";
    })
    .join("");
}

/** Returns the anchor that GitHub generates for a heading. */
const headingId = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escapeHtml = (text: string): string => text.replaceAll(/[&<>"]/g, (char) => ESCAPES[char] ?? char);
