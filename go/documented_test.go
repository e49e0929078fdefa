package windrow_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// All that a package exports says what it is, in the modules beside this one, too.
func TestAllThatIsExportedIsDocumented(t *testing.T) {
	packages := 0
	err := filepath.WalkDir(".", func(folder string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "testdata" || name == "internal" {
			return fs.SkipDir
		}
		described := describe(t, folder)
		if described == nil || described.Name == "main" {
			return nil
		}
		packages++
		for _, name := range undocumented(described) {
			t.Errorf("%s: %s has no comment", folder, name)
		}
		return nil
	})
	if err != nil || packages < 6 {
		t.Fatal(packages, err)
	}
}

func describe(t *testing.T, folder string) *doc.Package {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil
	}
	described, err := doc.NewFromFiles(set, files, folder)
	if err != nil {
		t.Fatal(err)
	}
	return described
}

func undocumented(of *doc.Package) []string {
	var found []string
	need := func(name, text string) {
		if text == "" {
			found = append(found, name)
		}
	}
	values := func(all []*doc.Value) {
		for _, group := range all {
			for _, spec := range group.Decl.Specs {
				need(strings.Join(group.Names, ", "), group.Doc+spec.(*ast.ValueSpec).Doc.Text())
			}
		}
	}
	functions := func(within string, all []*doc.Func) {
		for _, function := range all {
			need(within+function.Name, function.Doc)
		}
	}
	need("the package", of.Doc)
	values(of.Consts)
	values(of.Vars)
	functions("", of.Funcs)
	for _, described := range of.Types {
		need(described.Name, described.Doc)
		values(described.Consts)
		values(described.Vars)
		functions("", described.Funcs)
		functions(described.Name+".", described.Methods)
	}
	return found
}
