import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { parse as parseYaml } from "yaml";
import { proseOfCode } from "./code.ts";
import type { TextKind } from "./rules.ts";
import { type Passage, splitPassages } from "./sentences.ts";

const ROOT = join(import.meta.dirname, "..", "..", "..");

/** Text that a person reads: in the source, at run time, on a page, or in the list of tests. */
export interface Text extends Passage {
  readonly file: string;
  readonly kind: TextKind;
}

/** Files whose words are not ours or not prose. */
const SKIPPED =
  /^(?:LICENSE|package-lock\.json|test\/vectors\/.*\.json|test\/data\/fixtures\/.*|test\/support\/language\/.*|test\/language\.test\.ts)$/;

/** Tracked and new files, without those that git ignores, by their paths from the root. */
const listFiles = (): readonly string[] =>
  execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: ROOT,
    encoding: "utf8",
  })
    .split("\n")
    .filter((file) => file !== "" && !SKIPPED.test(file));

/** Returns the texts of the project, or of the files below the given paths. */
export function collectTexts(paths: readonly string[] = []): readonly Text[] {
  const wanted = listFiles().filter(
    (file) =>
      paths.length === 0 ||
      paths.some((path) => file === path || file.startsWith(`${path.replace(/\/$/, "")}/`)),
  );
  return [...new Set(wanted)].flatMap((file) => {
    let source: string;
    try {
      source = readFileSync(join(ROOT, file), "utf8");
    } catch {
      return []; // Deleted, and still in git's index.
    }
    return readTexts(file, source);
  });
}

/** Returns the texts of one file. Exported for tests of the extraction. */
export function readTexts(file: string, source: string): readonly Text[] {
  const as =
    (kind: Text["kind"]) =>
    (passage: Passage): Text => ({ ...passage, file, kind });
  switch (extname(file)) {
    case ".ts":
    case ".tsx": {
      const prose = proseOfCode(file, source);
      const isTest = file.startsWith("test/");
      return [
        ...prose.comments.map(as("comment")),
        ...(isTest ? prose.testNames.map(as("test name")) : prose.strings.map(as("message"))),
      ];
    }
    case ".md":
      return markdown(source).map(as("doc"));
    case ".lua":
    case ".sql":
      return lineComments(source, "--").map(as("comment"));
    case ".css":
      return [...source.matchAll(/\/\*([\s\S]*?)\*\//g)].flatMap((match) =>
        splitPassages((match[1] ?? "").split("\n"), lineAt(source, match.index)).map(as("comment")),
      );
    case ".json":
      if (/tsconfig[^/]*$/.test(file)) return lineComments(source, "//").map(as("comment"));
      return jsonStrings(JSON.parse(source)).map((text) =>
        as("message")({ line: lineAt(source, source.indexOf(text.slice(0, 20))), text }),
      );
    case ".yaml":
    case ".yml":
      return [...lineComments(source, "#").map(as("comment")), ...yamlTexts(source).map(as("message"))];
    default:
      return isShell(file, source)
        ? [...lineComments(source, "#").map(as("comment")), ...shellStrings(source).map(as("message"))]
        : [];
  }
}

const lineAt = (source: string, index: number): number =>
  source.slice(0, Math.max(index, 0)).split("\n").length;

const isShell = (file: string, source: string): boolean =>
  /(?:^|\/)(?:Dockerfile|\.dockerignore|\.npmrc|[^/]+\.(?:sh|env|service))$/.test(file) ||
  source.startsWith("#!");

/** Whole-line comments; adjacent ones belong together. */
function lineComments(source: string, mark: string): readonly Passage[] {
  const passages: Passage[] = [];
  let block: string[] = [];
  let start = 0;
  const end = () => {
    passages.push(...splitPassages(block, start));
    block = [];
  };
  for (const [index, line] of source.split("\n").entries()) {
    const text = line.trimStart();
    const isDirective = /^#!|^# (?:shellcheck|syntax|yaml-language-server)\b/.test(text);
    if (!text.startsWith(mark) || isDirective) {
      end();
      continue;
    }
    if (block.length === 0) start = index + 1;
    block.push(text.replace(/^[-#/]+/, ""));
  }
  end();
  return passages;
}

/** Quoted strings of at least three words. */
const shellStrings = (source: string): readonly Passage[] =>
  source.split("\n").flatMap((line, index) =>
    line.trimStart().startsWith("#")
      ? []
      : [...line.matchAll(/'([^']*)'|"((?:[^"\\]|\\.)*)"/g)]
          .map((match) => (match[1] ?? match[2] ?? "").replace(/\$\([^)]*\)|\$\{?\w+\}?/g, "`X`"))
          .filter((text) => /^\p{Lu}[\p{L}']* [\p{L}`]+ [\p{L}`]/u.test(text))
          .map((text) => ({ line: index + 1, text })),
  );

const PROSE_KEYS = new Set([
  "title",
  "description",
  "summary",
  "message",
  "note",
  "notes",
  "reason",
  "text",
  "why",
]);

/** Strings under keys that hold prose. */
function jsonStrings(value: unknown, key = ""): readonly string[] {
  if (typeof value === "string") return PROSE_KEYS.has(key) && value.includes(" ") ? [value] : [];
  if (Array.isArray(value)) return value.flatMap((element) => jsonStrings(element, key));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => jsonStrings(member, name));
}

function yamlTexts(source: string): readonly Passage[] {
  try {
    return jsonStrings(parseYaml(source)).map((text) => ({
      line: lineAt(source, source.indexOf(text.slice(0, 20))),
      text: text.replace(/\{\{[^}]*\}\}/g, "`X`"),
    }));
  } catch {
    return []; // Several documents in one file: manifests, without prose.
  }
}

/** The prose of a page: without front matter, code blocks, HTML comments and tags. */
function markdown(source: string): readonly Passage[] {
  let inCode = false;
  let inFrontMatter = source.startsWith("---\n");
  const lines = source
    .replace(/<!--[\s\S]*?-->/g, (comment) => comment.replace(/[^\n]/g, ""))
    .split("\n")
    .map((line, index) => {
      if (inFrontMatter) {
        if (index > 0 && line === "---") inFrontMatter = false;
        return "";
      }
      if (/^\s*(?:```|~~~)/.test(line)) {
        inCode = !inCode;
        return "";
      }
      return inCode || /^\s*<\/?\w[^>]*>\s*$/.test(line) ? "" : line;
    });
  return splitPassages(lines, 1);
}
