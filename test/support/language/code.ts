import { parseSync } from "rolldown/utils";
import { type Passage, splitPassages } from "./sentences.ts";

/** The prose of a TypeScript file. */
export interface CodeProse {
  readonly comments: readonly Passage[];
  /** String literals, templates and JSX text that hold words. */
  readonly strings: readonly Passage[];
  /** First arguments of `describe`, `it` and `test`. */
  readonly testNames: readonly Passage[];
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";

/** Two words next to each other: not a key, a path, a class list of CSS or a header. */
const HAS_PROSE = /[\p{L}`]{2,}[,;:.]? [\p{L}`]/u;

/** @throws Error if the file is not valid TypeScript. */
export function proseOfCode(file: string, source: string): CodeProse {
  const { program, comments, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`);
  const lineOf = createLineIndex(source);
  const strings: Passage[] = [];
  const testNames: Passage[] = [];
  const addString = (node: Node, text: string) => {
    if (HAS_PROSE.test(text) && !/^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE) /.test(text))
      strings.push(...splitPassages(text.split("\n"), lineOf(node.start)));
  };

  const visit = (node: Node): void => {
    switch (node.type) {
      case "ImportDeclaration":
      case "ExportAllDeclaration":
        return;
      case "TaggedTemplateExpression":
        // SQL and the like.
        if (isNode(node.quasi)) visitAll(node.quasi.expressions);
        return;
      case "JSXAttribute":
        if (isNode(node.name) && ["class", "d", "style", "path", "points"].includes(String(node.name.name)))
          return;
        break;
      case "JSXElement":
      case "JSXFragment":
        addString(node, jsxText(node));
        break;
      case "CallExpression": {
        const [name] = node.arguments as readonly Node[];
        if (name !== undefined && isTestFunction(node.callee)) {
          const text = stringText(name);
          if (text !== undefined)
            testNames.push({ line: lineOf(name.start), text: text.replace(/%[sdifjo#]|\$\w+/g, "X") });
        }
        break;
      }
      default: {
        const text = stringText(node);
        if (text !== undefined) {
          addString(node, text);
          return;
        }
      }
    }
    for (const [key, value] of Object.entries(node)) if (key !== "parent") visitAll(value);
  };
  const visitAll = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visitAll);
    else if (isNode(value)) visit(value);
  };
  visit(program as unknown as Node);

  return { comments: readComments(comments, source, lineOf), strings, testNames };
}

/** Text of a literal, template or concatenation; expressions in it become `X`. `undefined` for any other node. */
function stringText(node: Node): string | undefined {
  if (node.type === "Literal") return typeof node.value === "string" ? node.value : undefined;
  if (node.type === "TemplateLiteral") {
    const quasis = node.quasis as readonly { readonly value: { readonly cooked: string | null } }[];
    return quasis.map(({ value }) => value.cooked ?? "").join("`X`");
  }
  if (node.type !== "BinaryExpression" || node.operator !== "+" || !isNode(node.left) || !isNode(node.right))
    return undefined;
  const [left, right] = [stringText(node.left), stringText(node.right)];
  return left === undefined && right === undefined ? undefined : `${left ?? "`X`"}${right ?? "`X`"}`;
}

const jsxText = (node: Node): string =>
  (node.children as readonly Node[])
    .map((child) => (child.type === "JSXText" ? String(child.value).replace(/\s+/g, " ") : "`X`"))
    .join("");

/** `it`, `it.each(…)`, `describe.skipIf(…)` and the like. */
function isTestFunction(callee: unknown): boolean {
  if (!isNode(callee)) return false;
  if (callee.type === "Identifier") return ["describe", "it", "test"].includes(String(callee.name));
  return isTestFunction(
    callee.type === "MemberExpression"
      ? callee.object
      : callee.type === "CallExpression"
        ? callee.callee
        : undefined,
  );
}

interface Comment {
  readonly type: "Block" | "Line";
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

function readComments(
  comments: readonly Comment[],
  source: string,
  lineOf: (index: number) => number,
): readonly Passage[] {
  const passages: Passage[] = [];
  for (let index = 0; index < comments.length; index += 1) {
    const comment = comments[index] as Comment;
    const lines = comment.value.split("\n").map((line) => line.replace(/^\s*\*+ ?/, ""));
    let end = comment.end;
    if (comment.type === "Line") {
      for (
        let next = comments[index + 1];
        next?.type === "Line" && source.slice(end, next.start).trim() === "";
        next = comments[index + 1]
      ) {
        if (source.slice(end, next.start).split("\n").length !== 2) break;
        lines.push(next.value);
        end = next.end;
        index += 1;
      }
    }
    passages.push(...splitPassages(withoutTags(lines), lineOf(comment.start)));
  }
  return passages;
}

/** Drops examples, code blocks and directives of tools; a tag starts a passage of its own. */
function withoutTags(lines: readonly string[]): readonly string[] {
  let inExample = false;
  let inCode = false;
  return lines.flatMap((line) => {
    const text = line.trim();
    if (text.startsWith("```")) inCode = !inCode;
    if (text.startsWith("```") || inCode) return [""];
    if (text.startsWith("@")) inExample = text.startsWith("@example");
    if (inExample || /^(?:biome-ignore|@ts-|@jsx|v8 ignore|#__PURE__)/.test(text)) return [""];
    const tag = /^@(?:param|typeParam) \S+ ?-? ?|^@\w+ ?/.exec(text);
    // A separate element keeps the passage apart without changing the number of lines by more than the tag.
    return tag === null ? [line] : [`- ${text.slice(tag[0].length)}`];
  });
}

function createLineIndex(source: string): (index: number) => number {
  const starts = [0];
  for (let at = source.indexOf("\n"); at !== -1; at = source.indexOf("\n", at + 1)) starts.push(at + 1);
  return (index) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= index) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  };
}
