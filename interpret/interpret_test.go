// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return u.Object
}

const widget = `{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"name":"w","namespace":"shop"},
"spec":{"size":3,"big":9007199254740993,"ratio":1.0,"gone":null,"none":[],"nothing":{},"holes":[1,null],
"template":{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"100m"}}}]}},"secret":"hunter2"}}`

func compiled(t testing.TB, function, source string) *Script {
	t.Helper()
	s, err := Compile(function, source, Native{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReplicas(t *testing.T) {
	s, err := Compile(GetReplicas, `
local kube = require("kube")
function GetReplicas(obj)
  local needs = kube.accuratePodRequirements(obj.spec.template)
  needs.priorityClassName = "high"
  needs.resourceRequest.cpu = kube.resourceAdd(needs.resourceRequest.cpu, "900m", nil)
  return obj.spec.size, needs
end`, Native{Requirements: func(template map[string]any) *workv1alpha2.ReplicaRequirements {
		needs := &workv1alpha2.ReplicaRequirements{}
		if err := json.Unmarshal([]byte(`{"resourceRequest":{"cpu":"100m"},"nodeClaim":{"nodeSelector":{"disk":"ssd"}}}`), needs); err != nil {
			t.Fatal(err)
		}
		if _, ok := template["spec"].(map[string]any)["containers"].([]any); !ok {
			t.Errorf("the template is %v", template)
		}
		return needs
	}})

	if err != nil {
		t.Fatal(err)
	}

	n, needs, err := s.Replicas(object(t, widget))
	if err != nil || n != 3 {
		t.Fatal(n, err)
	}

	text, _ := json.Marshal(needs)
	if want := `{"nodeClaim":{"nodeSelector":{"disk":"ssd"}},"resourceRequest":{"cpu":"1"},"priorityClassName":"high"}`; string(text) != want {
		t.Errorf("requirements %s, want %s", text, want)
	}
}

func TestReviseKeepsWhatItLeaves(t *testing.T) {
	s := compiled(t, ReviseReplica, `
function ReviseReplica(obj, desiredReplica)
  obj.spec.size = desiredReplica
  for i, c in ipairs(obj.spec.template.spec.containers) do c.index = i end
  return obj
end`)

	o := object(t, widget)
	before, want := object(t, widget), object(t, widget)
	spec := want["spec"].(map[string]any)
	spec["size"] = int64(7)
	spec["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["index"] = int64(1)
	got, err := s.Revise(o, 7)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if !reflect.DeepEqual(o, before) {
		t.Error("the argument was altered")
	}
}

func TestDependencies(t *testing.T) {
	s, err := Compile(GetDependencies, `
function GetDependencies(obj)
  local all = kube.getPodDependencies(obj.spec.template, obj.metadata.namespace)
  table.insert(all, {apiVersion = "v1", kind = "Secret", name = obj.metadata.name .. "-key"})
  all[#all + 1] = {apiVersion = "v1", kind = "ConfigMap", labelSelector = {matchLabels = {app = "w"}}}
  return all
end`, Native{Dependencies: func(_ map[string]any, namespace string) []Reference {
		return []Reference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "settings"}}
	}})

	if err != nil {
		t.Fatal(err)
	}

	refs, err := s.Dependencies(object(t, widget))
	if err != nil {
		t.Fatal(err)
	}

	text, _ := json.Marshal(refs)
	want := `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"settings"},` +
		`{"apiVersion":"v1","kind":"Secret","name":"w-key"},` +
		`{"apiVersion":"v1","kind":"ConfigMap","labelSelector":{"matchLabels":{"app":"w"}}}]`
	if string(text) != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
}

// Expressions with the results of Lua 5.1.
func TestLanguage(t *testing.T) {
	for expression, want := range map[string]string{
		`string.find("hello world", "o w")`:                            "5",
		`string.format("%d %5.2f %s %q %x %%", 3, 2.5, "x", "y", 255)`: `3  2.50 x "y" ff %`,
		`("key = value"):match("^(%w+)%s*=%s*(%w+)$")`:                 "key",
		`(string.gsub("hello", "l", "L"))`:                             "heLLo",
		`(string.gsub("hello", "", "-"))`:                              "-h-e-l-l-o-",
		`(string.gsub("abc", "%w", "%0%0"))`:                           "aabbcc",
		`(string.gsub("$a $b", "%$(%w+)", {a = "1"}))`:                 "1 $b",
		`(string.gsub("abc", "b", function(c) return c:upper() end))`:  "aBc",
		`(string.gsub("one two", "(%w+) (%w+)", "%2 %1"))`:             "two one",
		`string.match("[[x]]", "%b[]")`:                                "[[x]]",
		`string.match("2024-05", "(%d+)-()")`:                          "2024",
		`string.match("aXb", "[^%l]")`:                                 "X",
		`string.match("a-b", "[a%-]+")`:                                "a-",
		`string.match("xaay", "a-y")`:                                  "aay",
		`string.match("abab", "(ab)%1")`:                               "ab",
		`string.rep("ab", 3)`:                                          "ababab",
		`string.sub("hello", -3)`:                                      "llo",
		`string.sub("hello", 2, 3)`:                                    "el",
		`string.reverse("abc")`:                                        "cba",
		`string.upper("aé")`:                                           "Aé",
		`table.concat({1, 2, 3}, ",")`:                                 "1,2,3",
		`1 .. "a" .. 2`:                                                "1a2",
		`#"abc" + #{1, 2}`:                                             "5",
		`select("#", unpack({1, 2, 3}))`:                               "3",
		`tostring({})`:                                                 "table",
		`tostring(nil) .. tostring(true)`:                              "niltrue",
		`math.floor(7 / 2)`:                                            "3",
		`math.max(1, 5, 3)`:                                            "5",
		`tonumber("12") + 1`:                                           "13",
		`string.byte("A")`:                                             "65",
		`string.char(72, 105)`:                                         "Hi",
		`(function() local t = {3, 1, 2} table.sort(t) return table.concat(t) end)()`:                                                         "123",
		`(function() local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return table.concat(t) end)()`:                        "321",
		`(function() local t = {1, 2} table.insert(t, 1, 0) table.remove(t, 2) return table.concat(t) end)()`:                                 "02",
		`(function() local t, n = {}, 0 for w in ("a b c"):gmatch("%a") do n = n + 1 t[n] = w end return table.concat(t) end)()`:              "abc",
		`(function() local a, b = 1, 2 a, b = b, a return a .. b end)()`:                                                                      "21",
		`(function() local t = {} t.a, t.b = 1, 2 return t.a .. t.b end)()`:                                                                   "12",
		`(function() local t = {n = 1} t.n, t = 2, {n = 3} return t.n end)()`:                                                                 "3",
		`(function() local t = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v * 2) end}) t.x = 2 return t.x end)()`:          "4",
		`(function() local t = setmetatable({}, {__concat = function(a, b) return "joined" end}) return "x" .. t end)()`:                      "joined",
		`(function() local t = setmetatable({}, {__index = {y = 5}}) return t.y end)()`:                                                       "5",
		`(function() local keys = {} for k in pairs({b = 1, a = 2, 9}) do keys[#keys + 1] = tostring(k) end return table.concat(keys) end)()`: "1ba",
		`(function() local ok, err = pcall(error, "no", 0) return tostring(ok) .. err end)()`:                                                 "falseno",
		`(function() local f = function(...) return ... end local t = {f(1, 2)} return #t end)()`:                                             "2",
		`"10" + 1`:                       "11",
		`"3" * "4" - 2 / "4"`:            "11.5",
		`-"2" + 0`:                       "-2",
		`2 ^ 10`:                         "1024",
		`2 ^ -2`:                         "0.25",
		`(-3) ^ 3`:                       "-27",
		`2 ^ 0`:                          "1",
		`math.pow(3, 4)`:                 "81",
		`-7 % 3 .. 7 % -3 .. 7 % 3`:      "2-21",
		`math.fmod(-7, 3)`:               "-1",
		`math.mod(7, 4)`:                 "3",
		`math.modf(3.5)`:                 "3",
		`select(2, math.modf(3.5))`:      "0.5",
		`math.sqrt(16)`:                  "4",
		`math.min(3, "1", 2)`:            "1",
		`math.ceil(1.2) .. math.abs(-2)`: "22",
		`math.huge > 2 ^ 1000`:           "true",
		`2 ^ 53`:                         "9007199254740992",
		// Numbers beyond 64 bits behave the same everywhere.
		`2 ^ 63`:                                "9.223372036854776e+18",
		`1e300`:                                 "1e+300",
		`-(2 ^ 63)`:                             "-9223372036854775808",
		`string.rep("x", -1e300)`:               "",
		`string.sub("hello", -1e300, 1e300)`:    "hello",
		`string.sub("hello", 0 / 0)`:            "hello",
		`string.format("%d %x", 3.7, 255)`:      "3 ff",
		`tostring(0.1 + 0.2)`:                   "0.30000000000000004",
		`tonumber("0x10") .. tonumber("z", 36)`: "1635",
		`tonumber("1.5") .. tonumber(2)`:        "1.52",
		`tostring(tonumber("x"))`:               "nil",
		`tostring(tonumber({}))`:                "nil",
		`tostring(1 == 1) .. tostring(1 == "1") .. tostring("a" .. "b" == "ab")`:                                                         "truefalsetrue",
		`tostring("a" .. "" < "b" .. "") .. tostring("b" .. "" <= "a" .. "") .. tostring("b" .. "" > "a" .. "")`:                         "truefalsetrue",
		`(function() local a, b = 1, 2 return tostring(a < b) .. tostring(a >= b) .. tostring(a ~= b) end)()`:                            "truefalsetrue",
		`(function() local t = {} return tostring(t == t) .. tostring(t == {}) .. tostring(rawequal(t, t)) end)()`:                       "truefalsetrue",
		`(function() local m = {__eq = function() return true end} return tostring(setmetatable({}, m) == setmetatable({}, m)) end)()`:   "true",
		`(function() local m = {__lt = function() return true end} return tostring(setmetatable({}, m) <= setmetatable({}, m)) end)()`:   "false",
		`(function() local m = {__le = function() return true end} return tostring(setmetatable({}, m) >= setmetatable({}, m)) end)()`:   "true",
		`(function() local t = setmetatable({}, {__add = function(a, b) return b end}) return t + 5 end)()`:                              "5",
		`(function() local t = setmetatable({}, {__pow = function(a, b) return a end}) return 2 ^ t end)()`:                              "2",
		`(function() local t = setmetatable({}, {__unm = function(a) return "negated" end}) return -t end)()`:                            "negated",
		`(function() local t = {1, 2} local i = 2 return t[i] + t[i - 1] end)()`:                                                         "3",
		`(function() local k = "a" local t = {[k] = 1, [k .. k] = 2} return t[k] .. t.aa end)()`:                                         "12",
		`(function() local t = {a = {b = 3}} local k = "b" return t["a"][k] end)()`:                                                      "3",
		`(function(...) return select("#", ...) .. select(2, ...) .. select(-1, ...) end)("a", "b", "c")`:                                "3bc",
		`(function(...) local a, b = ... local t = {..., "z"} return a .. b .. #t end)("a", "b", "c")`:                                   "ab2",
		`(function(...) return (...) end)("a", "b")`:                                                                                     "a",
		`(function() local n = 0 for i = 1, 3 do n = n + i end return n end)()`:                                                          "6",
		`(function() local t = {} for k, v in pairs({x = 1}) do t[k] = v end return t.x end)()`:                                          "1",
		`(function() local c = {} c.__index = c function c.name(self) return self.n end return setmetatable({n = "n"}, c):name() end)()`: "n",
		`(function() for i = 1, 3 do if i == 2 then return i end end end)()`:                                                             "2",
	} {
		s := compiled(t, ReviseReplica, "function ReviseReplica() local v = "+expression+" return {v = tostring(v)} end")
		got, err := s.Revise(map[string]any{}, 0)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
		} else if got["v"] != want {
			t.Errorf("%s is %q, want %q", expression, got["v"], want)
		}
	}
}

func TestWhatIsNotThere(t *testing.T) {
	for _, name := range []string{
		"io", "os", "debug", "package", "channel", "coroutine", "load", "loadstring", "loadfile", "dofile", "module", "print",
		"collectgarbage", "getfenv", "setfenv", "newproxy", "_printregs", "string.dump", "math.random", "math.randomseed",
		// Their last digit depends on the processor.
		"math.sin", "math.cos", "math.tan", "math.asin", "math.acos", "math.atan", "math.atan2", "math.sinh", "math.cosh", "math.tanh",
		"math.exp", "math.log", "math.log10",
	} {
		s := compiled(t, InterpretHealth, "function InterpretHealth() return "+name+" == nil end")
		if absent, err := s.Healthy(nil); err != nil || !absent {
			t.Errorf("%s is there: %v", name, err)
		}
	}

	_, err := Compile(GetReplicas, `require("os")`, Native{})
	if err == nil || err.Error() != "GetReplicas: line 1: kube is the only module" {
		t.Error(err)
	}
}

// hostile scripts never end, or grow without bound.
var hostile = map[string]string{
	"loop":            `while true do end`,
	"caught loop":     `while true do pcall(function() while true do end end) end`,
	"handled loop":    `xpcall(function() while true do end end, function() while true do end end) while true do end`,
	"doubling":        `local s = "x" while true do s = s .. s end`,
	"caught doubling": `local s = "x" while true do pcall(function() s = s .. s end) end`,
	"kept strings":    `local t, s = {}, ("x"):rep(200000) while true do t[#t + 1] = s .. #t end`,
	"rep":             `local s = ("x"):rep(1e9)`,
	"rep again":       `local s = "x" for i = 1, 1e9 do s = s:rep(100) end`,
	"format":          `local s = "x" while true do s = string.format("%s%s", s, s) end`,
	"gsub growth":     `local s = "x" while true do s = s:gsub(".", "%0%0") end`,
	"gsub forever":    `("x"):rep(1000):gsub(".", function(c) while true do end end)`,
	"gsub of gsub":    `local function f() return (("x"):rep(1000):gsub(".", f)) end f()`,
	"pattern":         `("a"):rep(5000):find(".-.-.-.-.-b")`,
	"balance":         `while true do ("("):rep(9000):find("%b()") end`,
	"recursion":       `local function f() return 1 + f() end f()`,
	"tail recursion":  `local function f() return f() end f()`,
	"caught depth":    `local function f() pcall(f) f() end while true do pcall(f) end`,
	"metatable":       `local t = {} setmetatable(t, {__index = function(t, k) return t[k] end}) local x = t.y`,
	"index cycle":     `local t = {} setmetatable(t, {__index = t}) local x = t.y`,
	"far index":       `local t = {} t[60000000] = 1`,
	"many far":        `while true do local t = {} t[65000] = 1 end`,
	"rawset far":      `rawset({}, 60000000, 1)`,
	"tables":          `local t = {} while true do t = {t} end`,
	"big list":        `local t = {} while true do t[#t + 1] = 1 end`,
	"keys":            `local t = {} for i = 1, 1e9 do t["k" .. i] = i end`,
	"dead keys":       `local t = {} for i = 1, 60000 do t["k" .. i] = i t["k" .. i] = nil end while true do next(t) end`,
	"cut list":        `local t = {} for i = 1, 60000 do t[i] = i end for i = 1, 60000 do t[i] = nil end while true do local n = #t end`,
	"insert first":    `local t = {} while true do table.insert(t, 1, 1) end`,
	"concat":          `local t = {} for i = 1, 60000 do t[i] = ("x"):rep(100) end while true do table.concat(t) end`,
	"sort":            `local t = {} for i = 1, 10000 do t[i] = -i end while true do table.sort(t, function() return true end) end`,
	"unpack":          `unpack({}, 1, 1e8)`,
	"bytes":           `local s = ("x"):rep(200000) s:byte(1, -1)`,
	"varargs":         `local function f(...) return f(1, ...) end f()`,
	"iterator":        `for k in pairs({1}) do while true do k = 1 end end`,
	"goto":            `::a:: goto a`,
	"for":             `for i = 1, math.huge do end`,
	"string order":    `local a, b = ("x"):rep(200000), ("x"):rep(199999) .. "x" while true do local c = a < b end`,
	"string equality": `local a, b = ("x"):rep(200000), ("x"):rep(199999) .. "x" while true do local c = a == b end`,
	"string numbers":  `local s = "0." .. ("1"):rep(200000) while true do local n = s + 1 end`,
	"long keys":       `local s = ("x"):rep(200000) while true do local t = {[s] = 1} t[s] = 2 end`,
	"long key walk":   `local t = {} for i = 1, 20 do t[("x"):rep(200000) .. i] = i end while true do for k in pairs(t) do end end`,
	"tonumber":        `local s = ("1"):rep(200000) while true do tonumber(s) end`,
	"remainder":       `local n = 1e308 while true do local x = n % 3e-308 end`,
	"format flags":    `local f = "%" .. ("0"):rep(200000) .. "d" while true do pcall(string.format, f, 1) end`,
	"composed errors": `local s = ("1"):rep(200000) while true do pcall(error, s) end`,
	"amounts":         `while true do pcall(kube.resourceAdd, ("1"):rep(200000), "1e99999999") end`,
	"list of varargs": `local l = {} for i = 1, 900 do l[i] = i end local function f(...) while true do local t = {...} end end f(unpack(l))`,
	"looked up in":    `local t = {} for i = 1, 98 do t = setmetatable({}, {__index = t}) end while true do local x = t.y end`,
	"pods":            `local c = {} for i = 1, 3000 do c[i] = {resources = {requests = {cpu = "1"}}} end while true do kube.accuratePodRequirements({spec = {initContainers = c}}) end`,
	"returned cycle":  `local t = {} t.t = t return t`,
	"returned growth": `local t = {} for i = 1, 60 do t = {t, t} end return t`,
}

func TestHostileScriptsEndAtTheSamePlace(t *testing.T) {
	for name, body := range hostile {
		t.Run(name, func(t *testing.T) {

			s := compiled(t, ReviseReplica, "function ReviseReplica(obj, n) "+body+" end")
			var first string
			for i := range 2 {
				r, err := s.call(func(r *run) []lua.LValue { return nil }, 1)
				if err == nil {
					_, err = r.fromLua(r.results[0], nil)
				}
				if err == nil {
					t.Fatal("it ended well")
				}

				got := fmt.Sprintf("%v after %d steps", err, r.steps)
				if i == 0 {
					first = got
					t.Log(name + ": " + got)
				} else if got != first {
					t.Errorf("run %d: %s, before: %s", i, got, first)
				}
			}
		})
	}
}

// The same input gives the same bytes.
func TestSameInputSameBytes(t *testing.T) {
	s := compiled(t, ReviseReplica, `
function ReviseReplica(obj, n)
  local out, keys = {}, {}
  for k, v in pairs(obj.spec) do
    keys[#keys + 1] = k
    out[k .. "_" .. #keys] = tostring(v)
  end
  out.names = table.concat(keys, " ")
  for k in pairs(string) do out.names = out.names .. k end
  for k in pairs(math) do out.names = out.names .. k end
  for k in pairs(_G) do out.names = out.names .. k end
  return {spec = out}
end`)

	var first string
	for i := range 100 {
		got, err := s.Revise(object(t, widget), 1)
		if err != nil {
			t.Fatal(err)
		}

		text, _ := json.Marshal(got)
		if i > 0 && string(text) != first {
			t.Fatalf("run %d: %s, before: %s", i, text, first)
		}

		first = string(text)
	}
}

func TestErrorsDoNotQuoteTheObject(t *testing.T) {
	for body, want := range map[string]string{
		`error("the widget has " .. obj.spec.secret)`:           "GetReplicas: line 1: error text withheld, as it may quote the object",
		`error("the widget has no size")`:                       "GetReplicas: line 1: the widget has no size",
		`error(obj.spec.secret, 0)`:                             "GetReplicas: error text withheld, as it may quote the object",
		`assert(false, obj.spec.secret)`:                        "GetReplicas: line 1: error text withheld, as it may quote the object",
		`assert(nil)`:                                           "GetReplicas: line 1: assertion failed!",
		`error({obj.spec.secret})`:                              "GetReplicas: the error value is not a string",
		`return obj.missing.field`:                              "GetReplicas: line 1: attempt to index a non-table object(nil)",
		`return obj.spec.size[obj.spec.secret].x`:               "GetReplicas: line 1: attempt to index a non-table object(number)",
		`return obj.spec.secret`:                                "GetReplicas: the first result is not a valid number of replicas",
		`return -1`:                                             "GetReplicas: the first result is not a valid number of replicas",
		`return 1.5`:                                            "GetReplicas: the first result is not a valid number of replicas",
		`return 1, {resourceRequest = {cpu = obj.spec.secret}}`: "GetReplicas: the second result is not a valid replica requirement",
		`return "a" .. {}`:                                      "GetReplicas: line 1: attempt to concatenate a string and a table",
		`return #nil`:                                           "GetReplicas: line 1: attempt to get length of a nil",
		`return kube.resourceAdd(obj.spec.secret)`:              "GetReplicas: line 1: bad argument #1 to resourceAdd (is not a quantity)",
		`local ok, e = pcall(error, obj.spec.secret) error(e)`:  "GetReplicas: line 1: error text withheld, as it may quote the object",
		`return tonumber(obj.spec.secret) + 1`:                  "GetReplicas: line 1: cannot perform add operation between nil and number",
		`obj.spec.secret()`:                                     "GetReplicas: line 1: attempt to call a non-function object",
		`return setmetatable({}, {__tostring = function() return 1 end}) < 1`: "GetReplicas: line 1: attempt to compare table with number",
	} {
		s := compiled(t, GetReplicas, "function GetReplicas(obj) "+body+" end")
		_, _, err := s.Replicas(object(t, widget))
		if err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", body, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the secret is told", body)
		}
	}
}

// Of a Secret, and of what SOPS has encrypted, no error is repeated, whoever words it
// (A8, decision 48).
func TestErrorsOfASecretAreWithheld(t *testing.T) {
	s := compiled(t, GetReplicas, "function GetReplicas(obj) return obj.missing.field end")
	for text, want := range map[string]string{
		`{"apiVersion": "v1", "kind": "Secret"}`:                         "GetReplicas: line 1: error text withheld, as it may quote the object",
		`{"apiVersion": "v1", "kind": "Thing", "sops": {"mac": "x"}}`:    "GetReplicas: line 1: error text withheld, as it may quote the object",
		`{"apiVersion": "v1", "kind": "Thing", "spec": {"a": "Secret"}}`: "GetReplicas: line 1: attempt to index a non-table object(nil)",
	} {
		if _, _, err := s.Replicas(object(t, text)); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestScriptsThatDoNotCompile(t *testing.T) {
	for source, want := range map[string]string{
		`function GetReplicas(`:              "GetReplicas: GetReplicas at EOF: syntax error",
		`x = 1`:                              "GetReplicas: the script does not define this function",
		`while true do end`:                  "GetReplicas: more than 1000000 steps",
		strings.Repeat("-", maxSource+1):     "GetReplicas: the script has more than 65536 bytes",
		`goto nowhere`:                       "GetReplicas: ",
		"x = " + strings.Repeat("(", 60_000): "GetReplicas: ",
	} {
		_, err := Compile(GetReplicas, source, Native{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestNumbersThatAreNoObject(t *testing.T) {
	for _, value := range []string{"0/0", "1/0", "2^60", "function() end", "{1, a = 2}", "{[1.5] = 1}"} {
		s := compiled(t, ReviseReplica, "function ReviseReplica() return {v = "+value+"} end")
		if _, err := s.Revise(map[string]any{}, 1); err == nil || !strings.HasPrefix(err.Error(), "ReviseReplica: the result is not a valid object: ") {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// Any script ends, at the same step each time, and never panics.
func FuzzScript(f *testing.F) {
	for _, body := range hostile {
		f.Add("function ReviseReplica(obj, n) " + body + " end")
	}

	for _, body := range []string{
		`obj.spec.size = n return obj`,
		`local t = {} for k, v in pairs(obj) do t[k] = v end return t`,
		`return {v = kube.resourceAdd("1", obj.spec.secret, 2)}`,
		`return {a = kube.getPodDependencies(obj.spec.template), b = kube.accuratePodRequirements(obj.spec.template)}`,
		`local a, b = obj.long, obj.long while a < b .. a do a = a == b end`,
		`return {v = obj.long:gsub("1", "%0%0")}`,
		`return {v = obj.long:find("(1*)(1*)2")}`,
		`for w in obj.long:gmatch("%w+") do obj.spec.w = w end return obj`,
		`table.sort(obj.list, function(a, b) return a > b end) return {v = table.concat(obj.list, ",")}`,
		`return {v = math.fmod(1e308, 3e-308) ^ 2 % 5 - -obj.long + select("#", unpack(obj.list))}`,
		`return setmetatable({}, {__index = obj, __add = function(a, b) return a end}) + 1`,
		`return {v = string.format("%5.2f %q %s", 1, obj.long, tonumber(obj.long))}`,
		`local function f(...) return f(1, ...) end f()`,
	} {
		f.Add("local kube = require('kube') function ReviseReplica(obj, n) " + body + " end")
	}

	o := object(f, widget)
	o["long"] = strings.Repeat("1", 100_000)
	var list []any
	for i := range 300 {
		list = append(list, int64(i))
	}

	o["list"] = list
	f.Fuzz(func(t *testing.T, source string) {
		s, err := Compile(ReviseReplica, source, Native{})
		if err != nil {
			return
		}

		first, err1 := s.Revise(o, 2)
		second, err2 := s.Revise(o, 2)
		if fmt.Sprint(err1) != fmt.Sprint(err2) {
			t.Errorf("%v, then %v", err1, err2)
		}
		if err1 == nil && !reflect.DeepEqual(first, second) {
			t.Errorf("%v, then %v", first, second)
		}
	})
}

func BenchmarkInstructions(b *testing.B) {
	s := compiled(b, InterpretHealth, `function InterpretHealth() while true do end end`)
	for b.Loop() {
		if _, err := s.Healthy(nil); err == nil {
			b.Fatal("it ended")
		}
	}
	b.ReportMetric(float64(maxSteps)*float64(b.N)/b.Elapsed().Seconds(), "instructions/s")
}

func BenchmarkGetReplicas(b *testing.B) {
	s := compiled(b, GetReplicas, `
local kube = require("kube")
function GetReplicas(obj)
  return obj.spec.size, kube.accuratePodRequirements(obj.spec.template)
end`)

	o := object(b, widget)
	for b.Loop() {
		if _, _, err := s.Replicas(o); err != nil {
			b.Fatal(err)
		}
	}
}
