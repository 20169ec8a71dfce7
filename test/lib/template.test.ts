import { expect, test } from "vitest";
import { err, ok } from "../../src/lib/result.ts";
import { compileTemplate, type Placeholder } from "../../src/lib/template.ts";

type Values = Readonly<Record<string, string>>;

const bind = ({ name, filters }: Placeholder) =>
  name === "no" ? err("unknown name") : ok((values: Values) => [values[name], ...filters].join("/"));

function render(text: string, values: Values): string {
  const compiled = compileTemplate(text, bind);
  if (!compiled.ok) throw new Error(compiled.error);
  return compiled.value(values);
}

test("a text template replaces placeholders by values and keeps all other text", () => {
  expect(render('{"a": {"b": "{{x}}"}}-{{ y }}{{x}}', { x: "1", y: "2" })).toBe('{"a": {"b": "1"}}-21');
  expect(render("", {})).toBe("");
  expect(render("}} {x}", {})).toBe("}} {x}");
});

test("a text template applies the filters of a placeholder in order", () => {
  expect(render("{{ x | lower | hex }}", { x: "1" })).toBe("1/lower/hex");
});

test("a text template does not expand placeholders inside inserted values", () => {
  expect(render("{{x}}", { x: "{{y}}", y: "secret" })).toBe("{{y}}");
});

test.each([
  ["{{x", "has {{ without }}"],
  ["{{x}} {{", "has {{ without }}"],
  ["{{ {{x}}", "has {{ without }}"],
  ["{{}}", "{{}} has an empty name or filter"],
  ["{{x | }}", "{{x | }} has an empty name or filter"],
  ["{{no}}", "{{no}}: unknown name"],
])("an invalid text template is rejected: %s", (text, reason) => {
  expect(compileTemplate(text, bind)).toEqual(err(reason));
});
