// Reads a list of statements as JSON, and prints for each the result of libpg_query, which is PostgreSQL's own scanner and parser:
// its tokens as [start, end, type, text] in bytes, and the text that pg_stat_statements would keep; or an error.
const { loadModule, scanSync, normalizeSync } = require("libpg-query");

const tried = (work) => {
    try {
        return { Ok: work() };
    } catch (error) {
        return { Err: String(error.message) };
    }
};

(async () => {
    await loadModule();
    let input = "";
    for await (const part of process.stdin) input += part;
    const tokens = (sql) => scanSync(sql).tokens.map((token) => [token.start, token.end, token.tokenType, token.text]);
    const answers = JSON.parse(input).map((sql) => ({ tokens: tried(() => tokens(sql)), normalized: tried(() => normalizeSync(sql)) }));
    console.log(JSON.stringify(answers));
})();
